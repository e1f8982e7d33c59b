"""Runs as tasks of the protocol: the task's id is the run's id, and its result is that of `run_get`.

A run is durable before it is named, and every server process of the workspace answers for it. Ids are no secret: each
caller may list all runs anyway.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tsuzuki.mcp.answer import masked
from tsuzuki.mcp.runs.definitions import RUN_CANCEL, RUN_GET, RUN_START
from tsuzuki.mcp.runs.run_lists import progress_of
from tsuzuki.mcp.runs.run_tools import FAILURES, run_answer, waiting_words
from tsuzuki.mcp.runs.workspace import application_of
from tsuzuki.mcp.server import result_of
from tsuzuki.mcp.tasks import TaskStatus, TaskView
from tsuzuki.mcp.tool import ServerState
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.run import Run
from tsuzuki.model.secrets import SecretMask
from tsuzuki.model.states import RunState
from tsuzuki.wiring.application import Application

RUN_ID_DIGITS_MAX = 18
DAY_MS = 86_400_000


class RunTasks:
    """Every run is a task, whichever process or interface started it."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def started_by(self, tool: str, result: Mapping[str, Any]) -> TaskView | None:
        if tool != RUN_START.name or result.get("isError"):
            return None
        return self.get(str(result["structuredContent"]["run_id"]))

    def get(self, task_id: str) -> TaskView | None:
        self._state.require(RUN_GET.right)
        run_id = _run_id(task_id)
        application = application_of(self._state)
        try:
            run = None if run_id is None else application.runs.get(run_id).run
        except NotFound:
            return None
        return None if run is None else _task(application, run, self._state.mask)

    def cancel(self, task_id: str) -> bool:
        self._state.require(RUN_CANCEL.right)
        run_id = _run_id(task_id)
        if run_id is None:
            return False
        runs = application_of(self._state).runs
        try:
            runs.cancel(run_id)
        except NotFound:
            return False
        except Conflict:
            return True  # it has ended
        return True

    def update(self, task_id: str, responses: Mapping[str, Any]) -> bool:
        """A run asks for nothing, so there is nothing to give."""
        del responses
        return self.get(task_id) is not None


def _run_id(task_id: str) -> int | None:
    is_number = task_id.isascii() and task_id.isdigit() and len(task_id) <= RUN_ID_DIGITS_MAX
    return int(task_id) if is_number else None


def _task(application: Application, run: Run, mask: SecretMask | None) -> TaskView:
    days = application.settings.get("run_retention_days").value
    status = _status(run.state)
    outcome = None
    if status is TaskStatus.COMPLETED:
        answer = run_answer(application, run.id, budget=RUN_GET.budget_default, mask=mask)
        answer = masked(replace(answer, is_error=run.state in FAILURES), mask)
        outcome = {"result": result_of(answer).model_dump(by_alias=True, exclude_none=True)}
    message = _message(application, run)
    moments = (run.created_at, run.assigned_at, run.started_at, run.progress_at, run.finished_at)
    return TaskView(
        task_id=str(run.id),
        status=status,
        created_at=run.created_at,
        updated_at=max(one for one in moments if one is not None),
        message=message if mask is None else mask.text(message),
        # Counted from the end of the run, which is later than its creation.
        ttl_ms=int(str(days)) * DAY_MS or None,
        outcome=outcome,
    )


def _status(state: RunState) -> TaskStatus:
    if state is RunState.CANCELED:
        return TaskStatus.CANCELLED
    return TaskStatus.COMPLETED if state.is_final else TaskStatus.WORKING


def _message(application: Application, run: Run) -> str:
    words = f"run {run.id} of {run.job_name}: {run.state}"
    detail = progress_of(run) or waiting_words(application, run)
    return f"{words}, {detail}" if detail else words
