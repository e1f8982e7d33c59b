"""Carries confirmed bulk cancels out, page by page, oldest run first.

It needs no run and no slot, because those may be what is to be canceled. Each page is one transaction: the moves, what
became of each run, the position and the lines of the audit log. Another leader goes on at the position. Until an action
is carried out the assigner leaves out what it covers (`KnownCancels`).
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from tsuzuki.model.bulk import BulkResult
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import audit, bulk
from tsuzuki.store.audit import Recorded
from tsuzuki.store.bulk import BulkAction, ResultOfRun
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import cancel_requests, moves, runs
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels

PAGE = 200
"""Runs per transaction."""

TICK_SECONDS_MAX = 0.5
"""For how long pages are carried out before the leader has other duties again."""

ROUNDS_MAX = 2
"""A run that moved at the same moment is tried once more."""


CANCELED: dict[str, str] = {"state": RunState.CANCELED}
REQUESTED: dict[str, str] = {"state": RunState.RUNNING, "cancel": "requested"}
"""How the audit log has a run afterwards."""


class KnownCancels(NamedTuple):
    """What the leader knows of bulk cancels when it chooses runs: how many were ever confirmed, and those that are not
    carried out yet. An assignment is refused if one more was confirmed since."""

    confirmed: int = 0
    active: Sequence[BulkAction] = ()


class BulkCanceler:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def tick(self, term: Term) -> int:
        """Carry out pages for a while. Returns how many runs were canceled or requested to be."""
        clock = self._database.clock
        end = clock.monotonic() + TICK_SECONDS_MAX
        done = 0
        while True:
            with self._database.write() as connection:
                page = _carry_out_page(connection, term)
            done += page.done
            if not page.is_more or clock.monotonic() >= end:
                return done

    def active(self) -> list[BulkAction]:
        """The confirmed cancels that are not carried out yet."""
        with self._database.read() as connection:
            return bulk.active_cancels(connection)


def cancel_assigned(connection: Connection, action: BulkAction) -> None:
    """Cancel what the action covers and a worker may start at any moment; for the transaction that confirms it. As many
    as workers have slots, at most."""
    wanted = RunFilter.from_dict(action.filter)
    if RunState.ASSIGNED not in wanted.wanted_states:
        return
    assigned = replace(
        wanted, states=frozenset({RunState.ASSIGNED}), excluded_states=frozenset(), limit=PAGE
    )
    after_id = 0
    while page := runs.page_of(connection, assigned, after_id=after_id, up_to_id=action.ceiling_id):
        canceled = _cancel(connection, action, assigned, page, term=None)
        _store(connection, action, canceled, position=action.position, term=None)
        after_id = page[-1].id


class _Page(NamedTuple):
    """How many runs were canceled or requested to be, and whether another page can follow at once."""

    done: int = 0
    is_more: bool = False


def _carry_out_page(connection: Connection, term: Term) -> _Page:
    action = bulk.next_cancel(connection)
    if action is None:
        return _Page()
    wanted = replace(RunFilter.from_dict(action.filter), limit=PAGE)
    page = runs.page_of(connection, wanted, after_id=action.position, up_to_id=action.ceiling_id)
    if not page:
        return _Page(is_more=bulk.finish(connection, action.id, term=term))
    canceled = _cancel(connection, action, wanted, page, term=term)
    position = min(canceled.locked, default=page[-1].id + 1) - 1
    is_stored = _store(connection, action, canceled, position=position, term=term)
    is_stuck = canceled.locked and not (canceled.results and len(page) == PAGE)
    return _Page(len(canceled.changes), is_more=is_stored and not is_stuck)


class _Canceled(NamedTuple):
    """What became of the runs of a page. `locked` ones are not started and held by another transaction: they are
    looked at again."""

    results: list[ResultOfRun]
    changes: list[Recorded]
    locked: Collection[int]


def _cancel(
    connection: Connection,
    action: BulkAction,
    wanted: RunFilter,
    page: Sequence[Run],
    *,
    term: Term | None,
) -> _Canceled:
    """A run that moves at the same moment is read again: it is canceled only if the filter still matches it. One whose
    handler holds its row is requested to be canceled, unless it comes after a locked one: the next page has both."""
    actor = _actor_of(action)
    left = list(page)
    canceled: dict[int, RunState] = {}
    for _round in range(ROUNDS_MAX):
        refs = [run.ref for run in left]
        moved = moves.cancel(connection, operator=actor, runs=refs, term=term)
        canceled |= {run.id: run.state for run in left if run.id in moved}
        left = _still_matching(connection, wanted, [r.id for r in left if r.id not in moved])
        if not left:
            break
    locked = [run.id for run in left if run.state is not RunState.RUNNING]
    first_locked = min(locked, default=math.inf)
    held = [r.id for r in left if r.state is RunState.RUNNING and r.id < first_locked]
    cancel_requests.add(connection, held, reason=Reason.OPERATOR, requested_by=actor, term=term)
    channels.notify(connection, *set().union(*map(channels.concerned_by_cancel, page)))
    missed = {run.id for run in page} - canceled.keys() - {run.id for run in left}
    ended = [run.id for run in runs.get_many(connection, sorted(missed)) if run.state.is_final]
    return _Canceled(
        results=[
            *(ResultOfRun(run_id, BulkResult.CANCELED) for run_id in canceled),
            *(ResultOfRun(run_id, BulkResult.REQUESTED) for run_id in held),
            *(ResultOfRun(run_id, BulkResult.ENDED_BEFORE) for run_id in ended),
        ],
        changes=[
            *(_change(action, run_id, state, CANCELED) for run_id, state in canceled.items()),
            *(_change(action, run_id, RunState.RUNNING, REQUESTED) for run_id in held),
        ],
        locked=locked,
    )


def _still_matching(connection: Connection, wanted: RunFilter, run_ids: list[int]) -> list[Run]:
    """Those of the runs that the filter matches as they are now."""
    if not run_ids:
        return []
    first, last = run_ids[0], run_ids[-1]
    every = replace(wanted, limit=last - first + 1)
    found = runs.page_of(connection, every, after_id=first - 1, up_to_id=last)
    return [run for run in found if run.id in run_ids]


def _store(
    connection: Connection,
    action: BulkAction,
    canceled: _Canceled,
    *,
    position: int,
    term: Term | None,
) -> bool:
    """False, with nothing stored, if the term is over."""
    is_stored = bulk.advance(
        connection, action.id, position=position, results=canceled.results, term=term
    )
    if is_stored:
        audit.record_many(connection, canceled.changes, actor=_actor_of(action), object_type="run")
    return is_stored


def _change(action: BulkAction, run_id: int, before: RunState, after: dict[str, str]) -> Recorded:
    """The line that canceling the run alone would leave, with the bulk action beside it."""
    return Recorded(str(run_id), "run.cancel", {"state": before}, {**after, "bulk": action.id})


def _actor_of(action: BulkAction) -> str:
    return action.confirmed_by or action.created_by
