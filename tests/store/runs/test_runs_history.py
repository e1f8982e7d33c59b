"""The history of a run: one line per accepted move, written by the database, exact."""

from datetime import timedelta

import pytest

from support import raw_statements
from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    ref,
    run_in_state,
    take_lead,
)
from support.move_functions import BY_LEADER, BY_WORKER, LONG_AGO, MOVERS, moves_made, states_taken
from support.moving_clock import NOON, MovingClock
from tsuzuki.model.run import Transition
from tsuzuki.model.states import Actor, Reason, RunState
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Database

S = RunState


def history(database: Database, run_id: int) -> list[Transition]:
    with database.read() as connection:
        return runs.history(connection, run_id)


def line(run_id: int, version: int, move: tuple[S, S], at: float, **signed: object) -> Transition:
    return Transition(
        run_id=run_id,
        version=version,
        from_state=move[0],
        to_state=move[1],
        at=NOON + timedelta(seconds=at),
        **{"actor_id": WORKER, "epoch": None, "reason": None, "worker_id": WORKER, **signed},  # type: ignore[arg-type]
    )


def test_the_history_of_a_long_life_names_every_mover(
    database: Database, clock: MovingClock
) -> None:
    """Assigned, handed back, assigned by the next leader, started, failed."""
    term = take_lead(database)
    add_worker(database)
    run = create_run(database, add_job(database))
    assert history(database, run.id) == []

    clock.advance(1)
    with database.write() as connection:
        moves.assign(connection, term=term, assignments=[Assignment(run=run, worker_id=WORKER)])
    clock.advance(1)
    with database.write() as connection:
        moves.hand_back(connection, worker_id=WORKER, runs=[ref(database, run.id)])
    later = depose_and_take(database)
    clock.advance(1)
    with database.write() as connection:
        again = Assignment(run=ref(database, run.id), worker_id=WORKER)
        moves.assign(connection, term=later, assignments=[again])
    clock.advance(1)
    with database.write() as connection:
        ours = moves.start(connection, worker_id=WORKER, runs=[ref(database, run.id)])[run.id]
    clock.advance(1)
    with database.write() as connection:
        bad = RunEnd(run=ours.started, state=S.FAILED, reason=Reason.HANDLER_FAILED)
        moves.finish(connection, worker_id=WORKER, ends=[bad])

    led = {"actor": Actor.LEADER}
    worked = {"actor": Actor.WORKER}
    assert history(database, run.id) == [
        line(run.id, 2, (S.PENDING, S.ASSIGNED), 1, **led, actor_id="leader-1", epoch=1),
        line(run.id, 3, (S.ASSIGNED, S.ORPHANED), 2, **worked, reason=Reason.WORKER_SHUTDOWN),
        line(run.id, 4, (S.ORPHANED, S.ASSIGNED), 3, **led, actor_id="leader-2", epoch=2),
        line(run.id, 5, (S.ASSIGNED, S.RUNNING), 4, **worked, epoch=2),
        line(run.id, 6, (S.RUNNING, S.FAILED), 5, **worked, epoch=2, reason=Reason.HANDLER_FAILED),
    ]


@pytest.mark.parametrize("before", [S.PENDING, S.ORPHANED])
def test_two_moves_at_once_are_two_in_the_history_each_with_its_own_signature(
    database: Database, clock: MovingClock, before: RunState
) -> None:
    term = take_lead(database)
    add_worker(database)
    found = [run_in_state(database, before, term) for _ in range(3)]
    known = len(history(database, found[0].id))
    clock.advance(1)
    with database.write() as connection:
        started = moves.assign_and_start(connection, term=term, worker_id=WORKER, runs=found)
    for run in found:
        version = run.version
        assert started[run.id].started == (run.id, version + 2, term.epoch)
        assert history(database, run.id)[known:] == [
            line(
                run.id,
                version + 1,
                (before, S.ASSIGNED),
                1,
                actor=Actor.LEADER,
                actor_id="leader-1",
                epoch=1,
            ),
            line(run.id, version + 2, (S.ASSIGNED, S.RUNNING), 1, actor=Actor.WORKER, epoch=1),
        ]


def signature(name: str) -> tuple[Actor, str, int | None]:
    if name in BY_LEADER:
        return Actor.LEADER, "leader-1", 1
    if name in BY_WORKER:
        return Actor.WORKER, WORKER, None if name == "hand_back" else 1
    return Actor.OPERATOR, "operator-1", None


REASONS = {
    "orphan": Reason.WORKER_SILENT,
    "fail_lost": Reason.WORKER_LOST,
    "fail_orphaned": Reason.ORPHAN_LIMIT,
    "skip": Reason.LATE,
    "replace": Reason.REPLACED,
    "hand_back": Reason.WORKER_SHUTDOWN,
    "cancel": Reason.OPERATOR,
}


@pytest.mark.parametrize("name", [name for name in MOVERS if moves_made(name) == 1])
def test_every_mover_signs_with_its_name_its_epoch_and_its_reason(
    database: Database, clock: MovingClock, name: str
) -> None:
    term = take_lead(database)
    add_worker(database)
    found = {state: run_in_state(database, state, term) for state in states_taken(name)}
    clock.advance(LONG_AGO)
    for state, run in found.items():
        with database.write() as connection:
            assert MOVERS[name](connection, term, run)
        last = history(database, run.id)[-1]
        assert (last.version, last.from_state, last.at) == (run.version + 1, state, clock.now())
        assert (last.actor, last.actor_id, last.epoch) == signature(name)
        assert last.reason is REASONS.get(name)
        assigned = state is not S.PENDING or name == "assign"
        assert last.worker_id == (WORKER if assigned else None)


def test_a_move_that_lost_leaves_no_line(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, S.SUCCEEDED, term)
    before = history(database, run.id)
    for mover in MOVERS.values():
        with database.write() as connection:
            assert not mover(connection, term, run)
    assert history(database, run.id) == before


def test_a_move_that_was_rolled_back_leaves_no_line(database: Database) -> None:
    run = create_run(database, add_job(database))

    def cancel_and_stumble() -> None:
        with database.write() as connection:
            assert moves.cancel(connection, operator="me", runs=[run])
            raise KeyError

    with pytest.raises(KeyError):
        cancel_and_stumble()
    assert history(database, run.id) == []


def test_a_change_that_is_not_a_move_leaves_no_line(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    run = run_in_state(database, S.RUNNING, term)
    before = history(database, run.id)
    raw_statements.send(database, raw_statements.change(run.id, progress_processed=5, log_ref="x"))
    assert history(database, run.id) == before


def test_a_legal_move_by_hand_leaves_its_line_too(database: Database) -> None:
    run = create_run(database, add_job(database))
    raw_statements.send(
        database, raw_statements.move(run.id, S.CANCELED, Actor.OPERATOR, moved_by="psql")
    )
    (last,) = history(database, run.id)
    assert (last.to_state, last.actor_id, last.at) == (S.CANCELED, "psql", raw_statements.MOMENT)
