"""Failures by group, stored in the transaction that ends the runs. A run that succeeds costs nothing here."""

from collections.abc import Iterable, Sequence

from tsuzuki.model.failure_signature import signature_of
from tsuzuki.model.run import Run, WorkOrder
from tsuzuki.model.states import NOT_COUNTED_REASONS, Reason, RunState
from tsuzuki.store import failures
from tsuzuki.store.failures import RunFailure
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.sql.database import Connection

_FAILED = (RunState.FAILED, RunState.TIMED_OUT)


def note_failures(connection: Connection, ends: Iterable[tuple[Run | WorkOrder, RunEnd]]) -> None:
    """Of runs that a worker ended: those that failed or timed out."""
    _note(
        connection,
        [
            _failure(run, end.reason, end.error)
            for run, end in ends
            if end.state in _FAILED and end.reason not in NOT_COUNTED_REASONS
        ],
    )


def note_failed(connection: Connection, runs: Sequence[Run], reason: Reason) -> None:
    """Of runs that the leader failed for a reason of its own."""
    _note(connection, [_failure(run, reason, None) for run in runs])


def _note(connection: Connection, found: Sequence[RunFailure]) -> None:
    if found:
        failures.note(connection, found)


def _failure(run: Run | WorkOrder, reason: Reason | None, error: str | None) -> RunFailure:
    signature = signature_of(reason, error)
    return RunFailure(
        run_id=run.id,
        group_id=signature.id,
        job_definition_id=run.job_definition_id,
        signature=signature.text,
    )
