"""Somebody who moves runs as fast as possible and does not care who else does."""

from collections.abc import Sequence
from random import Random

from tsuzuki.model.clock import SystemClock
from tsuzuki.model.run import Run, RunRef, Started
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Connection, Database, open_database

BATCH = 12
Accepted = list[tuple[int, int]]
"""What took: a run and the version the move gave it."""


def hammer_in_process(
    url: str, term: Term, workers: Sequence[str], ids: Sequence[int], rounds: int, seed: int
) -> Accepted:
    database = open_database(url, clock=SystemClock())
    try:
        return hammer(database, term, workers, ids, rounds, seed)
    finally:
        database.close()


def hammer(
    database: Database,
    term: Term,
    workers: Sequence[str],
    ids: Sequence[int],
    rounds: int,
    seed: int,
) -> Accepted:
    """So many transactions, each of which looks at some runs and tries to move them on."""
    chance = Random(seed)
    accepted: Accepted = []
    for _ in range(rounds):
        some = chance.sample(ids, BATCH)
        with database.read() as connection:
            seen = {run.id: run for run in runs.get_many(connection, some)}
        in_any_order = [seen[run_id] for run_id in some]
        with database.write() as connection:
            took = _move_on(connection, term, workers, in_any_order, chance)
        accepted += [(run_id, seen[run_id].version + 1) for run_id in took]
    return accepted


def _move_on(
    connection: Connection, term: Term, workers: Sequence[str], seen: list[Run], chance: Random
) -> frozenset[int]:
    """One kind of move for all that are in the right state; whose turn it is, chance decides."""
    by_state: dict[RunState, list[Run]] = {}
    for run in seen:
        if not run.state.is_final:
            by_state.setdefault(run.state, []).append(run)
    if not by_state:
        return frozenset()
    state = chance.choice(sorted(by_state))
    found = by_state[state]
    refs = [RunRef(id=run.id, version=run.version) for run in found]
    if chance.random() < 0.05:
        return moves.cancel(connection, operator="somebody", runs=refs[:1])
    match state:
        case RunState.ASSIGNED:
            me = found[0].assigned_worker_id or ""
            if chance.random() < 0.5:
                return moves.hand_back(connection, worker_id=me, runs=refs)
            return frozenset(moves.start(connection, worker_id=me, runs=refs))
        case RunState.RUNNING:
            return moves.finish(
                connection,
                worker_id=found[0].assigned_worker_id or "",
                ends=[_ending(run) for run in found[:2]],
            )
        case _:
            chosen = [Assignment(run=ref, worker_id=chance.choice(workers)) for ref in refs]
            return moves.assign(connection, term=term, assignments=chosen)


def _ending(run: Run) -> RunEnd:
    ours = Started(id=run.id, version=run.version, epoch=run.leader_epoch or 0)
    return RunEnd(run=ours, state=RunState.FAILED, reason=Reason.HANDLER_FAILED, error="x" * 200)
