"""Tools that the Tasks scenarios call. What runs is a run of a workspace; what asks for input is kept in memory."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from conformance_inputs import NAME, ask, field_of, input_required
from conformance_tools import Context, Fixture, content, text
from mcp.server.context import HandlerResult
from mcp.types import CallToolRequestParams

from tsuzuki.mcp.runs.run_tasks import RunTasks
from tsuzuki.mcp.tasks import (
    TaskSource,
    TaskStatus,
    TaskView,
    declares_tasks,
    tasks_not_declared,
)

AFTER_INPUT = content(text("done after input"))


class MemoryTasks:
    """Tasks that wait for input, or failed by an error of the protocol."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._tasks: dict[str, TaskView] = {}
        self._requests: dict[str, dict[str, Any]] = {}

    def add(self, status: TaskStatus, **outcome: Any) -> str:
        with self._lock:
            task_id, now = f"memory-{next(self._numbers)}", datetime.now(UTC)
            self._requests[task_id] = dict(outcome.get("inputRequests", {}))
            self._tasks[task_id] = TaskView(
                task_id=task_id, status=status, created_at=now, updated_at=now, outcome=outcome
            )
            return task_id

    def started_by(self, tool: str, result: Mapping[str, Any]) -> TaskView | None:
        return self.get((result.get("structuredContent") or {}).get("task", ""))

    def get(self, task_id: str) -> TaskView | None:
        return self._tasks.get(task_id)

    def cancel(self, task_id: str) -> bool:
        with self._lock:
            task = self._tasks.get(task_id)
            if task is not None and task.status in (TaskStatus.WORKING, TaskStatus.INPUT_REQUIRED):
                self._tasks[task_id] = replace(task, status=TaskStatus.CANCELLED, outcome=None)
            return task is not None

    def update(self, task_id: str, responses: Mapping[str, Any]) -> bool:
        with self._lock:
            task = self._tasks.get(task_id)
            if task is None or task.status is not TaskStatus.INPUT_REQUIRED:
                return task is not None
            left = {k: v for k, v in self._requests[task_id].items() if k not in responses}
            self._requests[task_id] = left
            if left:
                self._tasks[task_id] = replace(task, outcome={"inputRequests": left})
            else:
                done = {"result": AFTER_INPUT}
                self._tasks[task_id] = replace(task, status=TaskStatus.COMPLETED, outcome=done)
            return True


class JoinedTasks:
    """Runs where the id is one of a run, else those in memory."""

    def __init__(self, runs: RunTasks, memory: MemoryTasks) -> None:
        self._runs, self._memory = runs, memory

    def _of(self, task_id: str) -> TaskSource:
        return self._runs if task_id.isdigit() else self._memory

    def started_by(self, tool: str, result: Mapping[str, Any]) -> TaskView | None:
        if tool in RUN_JOBS:
            return self._runs.started_by("run_start", result)
        return self._memory.started_by(tool, result)

    def get(self, task_id: str) -> TaskView | None:
        return self._of(task_id).get(task_id)

    def cancel(self, task_id: str) -> bool:
        return self._of(task_id).cancel(task_id)

    def update(self, task_id: str, responses: Mapping[str, Any]) -> bool:
        return self._of(task_id).update(task_id, responses)


RUN_JOBS = ("slow_compute", "failing_job")
"""Tools that are jobs of the workspace, under the same name."""


def task_tools(memory: MemoryTasks, call_product: Fixture) -> dict[str, Fixture]:
    """`call_product` calls a tool of the product."""

    def started(add: Callable[[], str]) -> Fixture:
        async def answer(_context: Context, _params: CallToolRequestParams) -> HandlerResult:
            return content(text("started"), structuredContent={"task": add()})

        return answer

    async def run(context: Context, params: CallToolRequestParams) -> HandlerResult:
        arguments = {"job": params.name, "arguments": params.arguments or {}}
        wanted = params.model_copy(update={"name": "run_start", "arguments": arguments})
        return await call_product(context, wanted)

    async def only_as_task(context: Context, params: CallToolRequestParams) -> HandlerResult:
        if not declares_tasks(context):
            raise tasks_not_declared()
        return await run(context, params)

    async def asks_first(_context: Context, params: CallToolRequestParams) -> HandlerResult:
        name = field_of(params, "user_name", "name")
        if not name:
            return input_required("asked", user_name=NAME)
        task = memory.add(TaskStatus.COMPLETED, result=content(text(f"Hello, {name}!")))
        return content(text("started"), structuredContent={"task": task})

    async def greet(_context: Context, params: CallToolRequestParams) -> HandlerResult:
        return content(text(f"Hello, {(params.arguments or {})['name']}!"))

    def waiting(**requests: Any) -> Callable[[], str]:
        return lambda: memory.add(TaskStatus.INPUT_REQUIRED, inputRequests=requests)

    error = {"code": -32603, "message": "the protocol failed"}
    confirm = ask("Delete it?", "confirm", "boolean")
    return {
        "greet": greet,
        "slow_compute": run,
        "failing_job": only_as_task,
        "confirm_delete": started(waiting(confirm=confirm)),
        "multi_input": started(waiting(first=NAME, second=confirm)),
        "protocol_error_job": started(lambda: memory.add(TaskStatus.FAILED, error=error)),
        "test_tool_with_task": asks_first,
    }
