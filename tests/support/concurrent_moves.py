"""Moves random runs as fast as possible, concurrently with other callers (races, deadlocks)."""

from collections.abc import Sequence
from random import Random

from support.processes import keep_together
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.run import Run, RunRef, StartedRun
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Connection, Database, open_database

BATCH = 12
ROUNDS_TOGETHER = 10
Accepted = list[tuple[int, int]]
"""Moves that took effect: the run, and the version it has now."""


def move_at_random_in_process(
    url: str, term: Term, workers: Sequence[str], ids: Sequence[int], rounds: int, seed: int
) -> Accepted:
    """Make random moves in lockstep: all processes do the same number of rounds, however they are scheduled."""
    database = open_database(url, clock=SystemClock())
    random = Random(seed)
    accepted: Accepted = []
    try:
        for _ in range(0, rounds, ROUNDS_TOGETHER):
            keep_together()
            accepted += move_at_random(
                database, term, workers, ids, ROUNDS_TOGETHER, random.randrange(2**32)
            )
        return accepted
    finally:
        database.close()


def move_at_random(
    database: Database,
    term: Term,
    workers: Sequence[str],
    ids: Sequence[int],
    rounds: int,
    seed: int,
) -> Accepted:
    """`rounds` transactions; each reads some runs and tries to move them on."""
    random = Random(seed)
    accepted: Accepted = []
    for _ in range(rounds):
        some = random.sample(ids, BATCH)
        with database.read() as connection:
            seen = {run.id: run for run in runs.get_many(connection, some)}
        in_any_order = [seen[run_id] for run_id in some]
        with database.write() as connection:
            moved = _move_on(connection, term, workers, in_any_order, random)
        accepted += [(run_id, seen[run_id].version + 1) for run_id in moved]
    return accepted


def _move_on(
    connection: Connection, term: Term, workers: Sequence[str], seen: list[Run], random: Random
) -> frozenset[int]:
    """One random kind of move, for all runs that are in the right state."""
    by_state: dict[RunState, list[Run]] = {}
    for run in seen:
        if not run.state.is_final:
            by_state.setdefault(run.state, []).append(run)
    if not by_state:
        return frozenset()
    state = random.choice(sorted(by_state))
    found = by_state[state]
    refs = [RunRef(id=run.id, version=run.version) for run in found]
    if random.random() < 0.05:
        return moves.cancel(connection, operator="operator-1", runs=refs[:1])
    match state:
        case RunState.ASSIGNED:
            me = found[0].assigned_worker_id or ""
            if random.random() < 0.5:
                return moves.hand_back(connection, worker_id=me, runs=refs)
            return frozenset(moves.start(connection, worker_id=me, runs=refs))
        case RunState.RUNNING:
            return moves.finish(
                connection,
                worker_id=found[0].assigned_worker_id or "",
                ends=[_end_of(run) for run in found[:2]],
            )
        case _:
            chosen = [Assignment(run=ref, worker_id=random.choice(workers)) for ref in refs]
            return moves.assign(connection, term=term, assignments=chosen)


def _end_of(run: Run) -> RunEnd:
    ours = StartedRun(id=run.id, version=run.version, epoch=run.leader_epoch or 0)
    return RunEnd(run=ours, state=RunState.FAILED, reason=Reason.HANDLER_FAILED, error="x" * 200)
