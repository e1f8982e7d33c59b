"""Stores how runs ended, with what follows from it, in the worker's transaction.

No end waits for a locked row: a handler that was given up may hold its run's row in a transaction of its own for long,
and the worker's other runs must go on. The worker keeps such an end and tries again.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random
from typing import NamedTuple

from tsuzuki.engine.failures import note_failures
from tsuzuki.engine.outcome import Outcome
from tsuzuki.engine.retries import retry_for, store_retries
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.run_end import retry_after_of
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import moves, ownership
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.sql.database import Connection

RETRIED_STATES = frozenset({RunState.FAILED, RunState.TIMED_OUT})
"""Ends that are noted as failures, and may be retried."""


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
