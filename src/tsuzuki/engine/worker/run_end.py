"""From how an execution ended to the one move that says so."""

from typing import assert_never

from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.runs.moves import RunEnd

RETRY_AFTER_MAX_SECONDS = 366 * 86_400.0
"""Nobody is waited for longer than this."""


def run_end_of(task: Task, outcome: Outcome) -> RunEnd | None:
    """The one move an outcome stands for; None when the run is not ours to end."""
    match outcome:
        case Succeeded(result=result):
            return RunEnd(run=task.started, state=RunState.SUCCEEDED, result=result)
        case Failed(reason=reason, error=error):
            return RunEnd(run=task.started, state=RunState.FAILED, reason=reason, error=error)
        case Stopped(cause=cause):
            return _ending_of_stop(task, cause)
        case _:
            assert_never(outcome)


def _ending_of_stop(task: Task, cause: StopCause) -> RunEnd | None:
    match cause:
        case StopCause.CANCELED | StopCause.FENCED:
            return None
        case StopCause.TIMEOUT:
            error = f"it ran longer than {task.spec.timeout_seconds} s"
            state, reason = RunState.TIMED_OUT, Reason.TIMEOUT
        case StopCause.SHUTDOWN:
            error = "its worker was shut down"
            state, reason = RunState.FAILED, Reason.WORKER_SHUTDOWN
        case StopCause.NOT_CONFIRMED:
            error = "its worker could not confirm in time that it may go on"
            state, reason = RunState.FAILED, Reason.NOT_CONFIRMED
        case _:
            assert_never(cause)
    return RunEnd(run=task.started, state=state, reason=reason, error=error)


def retry_after_of(outcome: Outcome) -> float | None:
    """What the other side asked for, if it is a time to wait at all: handlers pass on whatever a
    server said, and one bad word must not keep the ends of all other runs from being stored."""
    asked: object = outcome.retry_after_seconds if isinstance(outcome, Failed) else None
    if not isinstance(asked, int | float) or not asked > 0:
        return None
    return min(float(asked), RETRY_AFTER_MAX_SECONDS)
