"""The tool set `runs`, as agents see it."""

from typing import Any

from tsuzuki.mcp.parameters import CURSOR, budget_parameter, parameter
from tsuzuki.mcp.tool import Tool, ToolParameter
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki.model.access import Right
from tsuzuki.model.states import RunState

_INSTRUCTIONS = """\
Jobs and runs of this workspace. A run goes on when you or this server are gone: keep its id.
job_list shows what can be started; run_start answers at once with a run id; run_get waits for its end.
run_logs shows what a run wrote, its end first; run_list shows what ran, the newest first."""

WAIT_SECONDS_MAX = 30
"""Clients end calls that take much longer."""

_MODULE = "tsuzuki.mcp.runs"
_RUN_ID = parameter("run_id", "integer", "id", "run", "task_id", required=True, minimum=1)
_JOB = ("name", "job_name", "job_id")
_WAIT = parameter(
    "wait_seconds",
    "integer",
    *("wait", "timeout", "timeout_seconds"),
    minimum=0,
    maximum=WAIT_SECONDS_MAX,
)


def _limit(maximum: int) -> ToolParameter:
    return parameter("limit", "integer", "count", "n", "max", "tail", minimum=1, maximum=maximum)


def _tool(
    name: str,
    description: str,
    function: str,
    *parameters: ToolParameter,
    budgets: tuple[int, int],
    right: Right = Right.RUNS_READ,
    **more: Any,
) -> Tool:
    default, most = budgets
    return Tool(
        name=name,
        description=description,
        function=f"{_MODULE}.{function}",
        right=right,
        parameters=(*parameters, budget_parameter(most)),
        budget_default=default,
        budget_max=most,
        **more,
    )


RUN_START = _tool(
    "run_start",
    "Start a job of this workspace in the background; answers at once with the run id. "
    "The same key and arguments start it once, however often it is said.",
    "run_tools:run_start",
    parameter("job", "string", *_JOB, required=True),
    parameter("arguments", "object", "args", "params", "parameters", "input"),
    parameter("key", "string", "idempotency_key"),
    example={"job": "hello"},
    budgets=(300, 1000),
    right=Right.JOBS_OPERATE,
    is_read_only=False,
)
RUN_GET = _tool(
    "run_get",
    "How a run stands: state, progress, result, error and why it waits. "
    "With wait_seconds it answers when the run ends.",
    "run_tools:run_get",
    _RUN_ID,
    _WAIT,
    example={"run_id": 1, "wait_seconds": WAIT_SECONDS_MAX},
    budgets=(1000, 4000),
)
RUN_LIST = _tool(
    "run_list",
    "What has run and what runs, the newest first.",
    "run_lists:run_list",
    parameter("job", "string", *_JOB),
    parameter("state", "string", "states", "status", enum=[one.value for one in RunState]),
    _limit(100),
    CURSOR,
    example={"state": "FAILED"},
    budgets=(1000, 4000),
)
RUN_CANCEL = _tool(
    "run_cancel",
    "Stop a run, or never let it start.",
    "run_tools:run_cancel",
    _RUN_ID,
    example={"run_id": 1},
    budgets=(300, 1000),
    right=Right.RUNS_OPERATE,
    is_read_only=False,
)
RUN_LOGS = _tool(
    "run_logs",
    "What a run wrote, its last lines first; the cursor goes back from there.",
    "run_lists:run_logs",
    _RUN_ID,
    parameter("from", "string", "direction", enum=["end", "start"]),
    _limit(1000),
    CURSOR,
    example={"run_id": 1},
    budgets=(2000, 8000),
)
JOB_LIST = _tool(
    "job_list",
    "Which jobs there are, when they run next, and what they do.",
    "run_lists:job_list",
    parameter("query", "string", "name", "filter", "q", "search"),
    CURSOR,
    example={},
    budgets=(1000, 4000),
    right=Right.JOBS_READ,
)
RUN_WAIT = _tool(
    "run_wait",
    "Wait for the end of a run.",
    "run_tools:run_wait",
    _RUN_ID,
    _WAIT,
    example={"run_id": 1},
    budgets=(1000, 4000),
    is_listed=False,
)

RUNS = ToolSet(
    name="runs",
    tools=(RUN_START, RUN_GET, RUN_LIST, RUN_CANCEL, RUN_LOGS, JOB_LIST, RUN_WAIT),
    instructions=_INSTRUCTIONS,
    makers={"workspace": f"{_MODULE}.workspace:ServedWorkspace"},
    tasks=f"{_MODULE}.run_tasks:RunTasks",
    task_tools=frozenset({RUN_START.name}),
)
