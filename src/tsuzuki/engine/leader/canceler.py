"""Cancels runs whose cancel was requested while another transaction held their row, as soon as it is free."""

from collections.abc import Iterable, Sequence

from tsuzuki.model.run import CancelRequest, Run
from tsuzuki.model.states import Reason
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import cancel_requests, moves, runs
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels

PAGE = 200
"""Requests per transaction."""


class Canceler:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def tick(self, term: Term) -> int:
        """Cancel every requested run whose row is free, and remove the requests of runs that have ended. Returns how
        many runs were canceled."""
        canceled = 0
        after_id: int | None = 0
        while after_id is not None:
            with self._database.write() as connection:
                page = cancel_requests.page(connection, after_id=after_id, limit=PAGE)
                canceled += _carry_out(connection, term, page)
            after_id = page[-1].run_id if len(page) == PAGE else None
        return canceled


def _carry_out(connection: Connection, term: Term, page: Sequence[CancelRequest]) -> int:
    found = {run.id: run for run in runs.get_many(connection, [one.run_id for one in page])}
    canceled = _cancel(connection, term, page, found)
    over = [
        run_id
        for run_id, *_ in page
        if run_id in canceled or run_id not in found or found[run_id].state.is_final
    ]
    removed = cancel_requests.remove(connection, over, term=term)
    _follow_retries(connection, term, [one for one in removed if one.run_id not in canceled])
    channels.notify(connection, *{channels.holder_of(found[run_id]) for run_id in canceled})
    return len(canceled)


def _cancel(
    connection: Connection, term: Term, page: Iterable[CancelRequest], found: dict[int, Run]
) -> frozenset[int]:
    live: dict[tuple[Reason, str], list[Run]] = {}
    for one in page:
        run = found.get(one.run_id)
        if run is not None and not run.state.is_final:
            live.setdefault((one.reason, one.requested_by), []).append(run)
    canceled: frozenset[int] = frozenset()
    for (reason, requested_by), of_one in live.items():
        refs = [run.ref for run in of_one]
        canceled |= (
            moves.replace(connection, term=term, runs=refs)
            if reason is Reason.REPLACED
            else moves.cancel(connection, operator=requested_by, runs=refs, term=term)
        )
    return canceled


def _follow_retries(connection: Connection, term: Term, removed: Iterable[CancelRequest]) -> None:
    """A run that failed at the moment of its request may have a retry already, which is then to be canceled. Only for
    requests that we removed: an operator who retries a run removes its request before."""
    for one in removed:
        retry = runs.get_retry(connection, one.run_id)
        if retry is not None and not retry.state.is_final:
            cancel_requests.add(
                connection,
                [retry.id],
                reason=one.reason,
                requested_by=one.requested_by,
                term=term,
            )
