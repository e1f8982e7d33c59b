"""How runs end here: the outcome of an execution becomes one move, and is stored with what follows from it in the
worker's transaction.

No end waits for a locked row: a handler that was given up may hold its run's row in a transaction of its own for long,
and the worker's other runs must go on. The worker keeps such an end and tries again.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random
from typing import NamedTuple, assert_never

from tsuzuki.engine.failures import note_failures
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.retries import retry_for, store_retries
from tsuzuki.engine.task import Task
from tsuzuki.model.run_limits import cut_error
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.visible_text import neutralise
from tsuzuki.store.runs import moves, ownership
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.sql.database import Connection

RETRIED_STATES = frozenset({RunState.FAILED, RunState.TIMED_OUT})
"""Ends that are noted as failures, and may be retried."""

ERROR_LINE_LENGTH_MAX = 200

RETRY_AFTER_MAX_SECONDS = 366 * 86_400.0
"""Upper bound of a retry delay that a handler asks for: 366 days."""


class EndedRun(NamedTuple):
    """A run that has ended here, and how."""

    task: Task
    end: RunEnd
    outcome: Outcome

    @property
    def run_id(self) -> int:
        return self.task.started.id


class Finished(NamedTuple):
    """Ends that the database accepted and refused, those whose row is locked, and how many retries were made."""

    accepted: list[EndedRun]
    refused: list[EndedRun]
    locked: list[EndedRun]
    retries: int


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
            error = f"ran longer than {task.spec.timeout_seconds} s"
            state, reason = RunState.TIMED_OUT, Reason.TIMEOUT
        case StopCause.SHUTDOWN:
            error = "the worker was shut down"
            state, reason = RunState.FAILED, Reason.WORKER_SHUTDOWN
        case StopCause.NOT_CONFIRMED:
            error = "the worker did not get the leader's confirmation in time"
            state, reason = RunState.FAILED, Reason.NOT_CONFIRMED
        case _:
            assert_never(cause)
    return RunEnd(run=task.started, state=state, reason=reason, error=error)


def finish(
    connection: Connection,
    ends: Sequence[EndedRun],
    *,
    worker_id: str,
    now: Callable[[Connection], datetime],
    random: Random,
    losses_max: int,
) -> Finished:
    accepted_ids = moves.finish(connection, worker_id=worker_id, ends=[one.end for one in ends])
    accepted = [one for one in ends if one.run_id in accepted_ids]
    left = [one for one in ends if one.run_id not in accepted_ids]
    owned = ownership.still_owned(
        connection, worker_id=worker_id, runs=[one.task.started for one in left]
    )
    refused = [one for one in left if one.run_id not in owned]
    locked = [one for one in left if one.run_id in owned]
    unsuccessful = [one for one in accepted if one.end.state in RETRIED_STATES]
    if not unsuccessful:
        return Finished(accepted, refused, locked, 0)
    note_failures(connection, [(one.task.run, one.end) for one in unsuccessful])
    at = now(connection)
    retries = store_retries(
        connection,
        (
            retry_for(
                task.run,
                task.spec,
                state=end.state,
                reason=end.reason,
                now=at,
                random=random,
                losses_max=losses_max,
                retry_after_seconds=retry_after_of(outcome),
            )
            for task, end, outcome in unsuccessful
        ),
    )
    return Finished(accepted, refused, locked, retries)


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
