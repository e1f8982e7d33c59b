"""The tool set `runs`, as agents see it."""

from typing import Any

from tsuzuki.mcp.parameters import CURSOR, budget_parameter, parameter
from tsuzuki.mcp.tool import Tool, ToolParameter
from tsuzuki.mcp.tool_set import ToolSet
from tsuzuki.model.access import Right
from tsuzuki.model.states import RunState

_INSTRUCTIONS = (
    "Jobs and runs of this workspace. A run continues even if you or this server stop: "
    "keep its ID.\njob_list lists jobs that can be started; run_start returns a run ID "
    "immediately; run_get waits for the end.\nrun_logs returns a run's output, last "
    "lines first; run_list lists runs, newest first."
)

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
    "Start a job of this workspace in the background and return the run ID "
    "immediately. Repeated calls with the same key and arguments start only one run.",
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
    "Get a run's state, progress, result, error and reason for waiting. With "
    "wait_seconds, waits for the run to end.",
    "run_tools:run_get",
    _RUN_ID,
    _WAIT,
    example={"run_id": 1, "wait_seconds": WAIT_SECONDS_MAX},
    budgets=(1000, 4000),
)
RUN_LIST = _tool(
    "run_list",
    "List runs, newest first.",
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
    "Cancel a run that is waiting or in progress.",
    "run_tools:run_cancel",
    _RUN_ID,
    example={"run_id": 1},
    budgets=(300, 1000),
    right=Right.RUNS_OPERATE,
    is_read_only=False,
)
RUN_LOGS = _tool(
    "run_logs",
    "Read a run's output, last lines first; the cursor goes back from there.",
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
    "List jobs with their next runs and what they execute.",
    "run_lists:job_list",
    parameter("query", "string", "name", "filter", "q", "search"),
    CURSOR,
    example={},
    budgets=(1000, 4000),
    right=Right.JOBS_READ,
)
RUN_WAIT = _tool(
    "run_wait",
    "Wait for a run to end.",
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
