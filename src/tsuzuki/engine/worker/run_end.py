"""From the outcome of an execution to the move that ends its run, and to the retry delay it asks for."""

from collections.abc import Callable
from typing import assert_never

from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.run_limits import cut_error
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.visible_text import neutralise
from tsuzuki.store.runs.moves import RunEnd

ERROR_LINE_LENGTH_MAX = 200

RETRY_AFTER_MAX_SECONDS = 366 * 86_400.0
"""Upper bound of a retry delay that a handler asks for: 366 days."""


def run_end_of(task: Task, outcome: Outcome) -> RunEnd | None:
    """The end of the run for this outcome; None if this worker does not own the run any more."""
    match outcome:
        case Succeeded(result=result):
            return RunEnd(run=task.started, state=RunState.SUCCEEDED, result=result)
        case Failed(reason=reason, error=error, result=result):
            return RunEnd(
                run=task.started,
                state=RunState.FAILED,
                reason=reason,
                error=cut_error(error),
                result=result,
            )
        case Stopped(cause=cause):
            return _end_of_stopped(task, cause)
        case _:
            assert_never(outcome)


def _end_of_stopped(task: Task, cause: StopCause) -> RunEnd | None:
    match cause:
        case StopCause.FENCED:
            return None
        case StopCause.CANCELED:
            return RunEnd(run=task.started, state=RunState.CANCELED, reason=Reason.OPERATOR)
        case StopCause.REPLACED:
            return RunEnd(run=task.started, state=RunState.CANCELED, reason=Reason.REPLACED)
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


def error_line(end: RunEnd, hide_secrets: Callable[[str], str]) -> str | None:
    """The first line of its error, for a log: short, without secrets and harmless on a terminal."""
    first = next(iter((end.error or "").strip().splitlines()), "")
    return neutralise(hide_secrets(first)[:ERROR_LINE_LENGTH_MAX]) or None


def retry_after_of(outcome: Outcome) -> float | None:
    """The retry delay that a server asked for, if it is a valid one: handlers pass on unchecked what the
    server sent, and one bad value must not keep the ends of all other runs from being stored."""
    seconds: object = outcome.retry_after_seconds if isinstance(outcome, Failed) else None
    if not isinstance(seconds, int | float) or not seconds > 0:
        return None
    return min(float(seconds), RETRY_AFTER_MAX_SECONDS)
