"""No write of a leader takes effect once its term is over, however the two cross."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, text

from support.dialects import only_on_postgresql
from support.factories import (
    WORKER,
    add_job,
    add_worker,
    depose_and_take,
    new_run,
    read_run,
    run_in_state,
    take_lead,
)
from support.leader_writes import LEADER_WRITES, everything, functions_that_carry_a_term
from support.move_functions import BY_LEADER, LONG_AGO, MOVERS, states_taken
from support.moving_clock import MovingClock
from support.threads import in_background
from support.waiting import wait_until_blocked
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.states import RunState
from tsuzuki.store import leadership, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, progress, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Database


def test_every_function_that_carries_a_term_is_proven_here() -> None:
    assert functions_that_carry_a_term() == set(LEADER_WRITES)


@pytest.mark.parametrize("name", LEADER_WRITES)
def test_a_write_under_an_old_term_changes_nothing(
    database: Database, clock: MovingClock, name: str
) -> None:
    old = take_lead(database)
    write = LEADER_WRITES[name](database, clock, old)
    new = depose_and_take(database)
    before = everything(database)
    lost = Term(holder=old.holder, epoch=new.epoch)
    """Of the same epoch: a failover took the term back, and then the epoch was given again."""
    for stale in (old, Term(holder=new.holder, epoch=old.epoch), lost):
        with database.write() as connection:
            assert not write(connection, stale)
    assert everything(database) == before
    with database.write() as connection:
        assert write(connection, new), "the case proves nothing: the new leader changed nothing"
    assert everything(database) != before


# --- two connections at once ----------------------------------------------------------------------


@pytest.fixture
def old_term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


@contextmanager
def impatient(database: Database) -> Iterator[Connection]:
    """A transaction that fails rather than wait for a lock."""
    with database.write() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '1s'"))
        yield connection


@contextmanager
def impatient_elsewhere(database: Database) -> Iterator[Connection]:
    """The same on a connection of its own, beside a transaction of this thread."""
    with database.engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '1s'"))
        yield connection


def assign(database: Database, term: Term, run: RunRef) -> frozenset[int]:
    with database.write() as connection:
        chosen = [Assignment(run=run, worker_id=WORKER)]
        return moves.assign(connection, term=term, assignments=chosen)


def depose(database: Database) -> int | None:
    with database.write() as connection:
        return leadership.depose(connection)


def take(database: Database) -> Term | None:
    with database.write() as connection:
        return leadership.take(connection, holder="leader-2", lease_seconds=60)


def test_a_write_of_a_leader_that_was_deposed_changes_nothing(
    database: Database, old_term: Term
) -> None:
    run = run_in_state(database, RunState.PENDING, old_term)
    depose(database)
    assert assign(database, old_term, run) == frozenset()


@only_on_postgresql
def test_a_leader_is_deposed_after_its_write_under_way_is_in(
    database: Database, old_term: Term
) -> None:
    first, second = (run_in_state(database, RunState.PENDING, old_term) for _ in range(2))
    with database.write() as connection:
        chosen = [Assignment(run=first, worker_id=WORKER)]
        assert moves.assign(connection, term=old_term, assignments=chosen)
        order = in_background(lambda: depose(database))
        wait_until_blocked(database)
        chosen = [Assignment(run=second, worker_id=WORKER)]
        assert moves.assign(connection, term=old_term, assignments=chosen), "half of a transaction"
    assert order.result(30) == old_term.epoch


@only_on_postgresql
@pytest.mark.parametrize("name", LEADER_WRITES)
def test_a_takeover_waits_until_the_write_of_the_old_leader_is_in(
    database: Database, clock: MovingClock, name: str
) -> None:
    old = take_lead(database)
    write = LEADER_WRITES[name](database, clock, old)
    with database.write() as connection:  # the lease is over now, or was already
        leadership.renew(connection, term=old, lease_seconds=0.0)
    with database.write() as connection:
        assert write(connection, old)
        takeover = in_background(lambda: take(database))
        wait_until_blocked(database)
        assert not takeover.done()
    assert takeover.result(30) == Term(holder="leader-2", epoch=old.epoch + 1)


@only_on_postgresql
def test_a_renewal_does_not_wait_for_the_leaders_own_writes(
    database: Database, old_term: Term
) -> None:
    run = run_in_state(database, RunState.PENDING, old_term)

    def renew() -> bool:
        with impatient(database) as connection:
            return leadership.renew(connection, term=old_term, lease_seconds=60)

    with database.write() as connection:
        chosen = [Assignment(run=run, worker_id=WORKER)]
        assert moves.assign(connection, term=old_term, assignments=chosen)
        assert in_background(renew).result(30)


@only_on_postgresql
@pytest.mark.parametrize("outcome", ["commits", "rolls back"])
def test_a_write_that_meets_a_takeover_waits_for_its_outcome(
    database: Database, clock: MovingClock, old_term: Term, outcome: str
) -> None:
    run = run_in_state(database, RunState.PENDING, old_term)
    clock.advance(120)
    with database.engine.connect() as connection:
        connection.begin()
        assert leadership.take(connection, holder="leader-2", lease_seconds=60)
        late = in_background(lambda: assign(database, old_term, run))
        wait_until_blocked(database)
        assert not late.done()
        connection.commit() if outcome == "commits" else connection.rollback()
    assert late.result(30) == (frozenset() if outcome == "commits" else {run.id})
    expected = RunState.PENDING if outcome == "commits" else RunState.ASSIGNED
    assert read_run(database, run.id).state is expected


@only_on_postgresql
@pytest.mark.parametrize("name", BY_LEADER)
def test_a_leader_skips_a_run_that_is_locked(
    database: Database, clock: MovingClock, old_term: Term, name: str
) -> None:
    run = run_in_state(database, min(states_taken(name)), old_term)
    clock.advance(LONG_AGO)

    def lead() -> set[int]:
        with impatient(database) as connection:
            return set(MOVERS[name](connection, old_term, run))

    with database.write() as connection:
        connection.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {run.id} FOR UPDATE"))
        assert in_background(lead).result(30) == set()
    assert lead() == {run.id}


# --- batches that meet ----------------------------------------------------------------------------


@pytest.fixture
def running(database: Database, old_term: Term) -> list[RunRef]:
    """Ten of many running runs. They do not lie on the disk in the order of their ids, and plans
    are made without indexes: so that an order which only comes from the plan is found out."""
    job_id = add_job(database)
    with database.write() as connection:
        created = runs.create(connection, [new_run(database, job_id) for _ in range(50)])
        refs = [RunRef(id=run_id or 0, version=1) for run_id in created]
        chosen = [Assignment(run=ref, worker_id=WORKER) for ref in refs]
        moves.assign(connection, term=old_term, assignments=chosen)
        assigned = [RunRef(id=ref.id, version=2) for ref in refs]
        started = moves.start(connection, worker_id=WORKER, runs=assigned)
        ours = [run.started for run in started.values()][20:30]
    with database.write() as connection:
        reports = [
            progress.ProgressReport(run=run, processed=1, total=None, number=1) for run in ours[:5]
        ]
        progress.report_progress(connection, worker_id=WORKER, reports=reports)
        connection.execute(text("ANALYZE"))
        for way in ("indexscan", "bitmapscan", "material", "hashjoin", "mergejoin"):
            name = database.engine.url.database
            connection.execute(text(f"ALTER DATABASE {name} SET enable_{way} = off"))
    database.engine.dispose()
    return [RunRef(id=run.id, version=run.version) for run in ours]


@only_on_postgresql
@pytest.mark.parametrize("other", ["ask_to_continue", "reattach"])
def test_two_writers_of_the_same_runs_leave_out_what_a_third_one_holds(
    database: Database, old_term: Term, running: list[RunRef], other: str
) -> None:
    if other == "reattach":
        with database.write() as connection:
            workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=60)
    with database.write() as connection:
        held = running[7].id
        connection.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {held} FOR UPDATE"))
        with impatient_elsewhere(database) as second:
            match other:
                case "ask_to_continue":
                    workers.request_confirmation(second, worker_id=WORKER, deadline_seconds=60)
                case "reattach":
                    workers.reattach_and_confirm(second, term=old_term, silent_after_seconds=6)
        with impatient_elsewhere(database) as third:
            assert len(moves.cancel(third, operator="me", runs=running[::-1])) == 9


@only_on_postgresql
def test_an_end_and_a_start_in_one_transaction_cannot_deadlock_with_a_cancel_of_both(
    database: Database, old_term: Term
) -> None:
    """The worker holds the later run and starts the earlier one, which the other has canceled, while the other goes
    on to the later one."""
    assigned = run_in_state(database, RunState.ASSIGNED, old_term)
    ending = run_in_state(database, RunState.RUNNING, old_term)
    ours = StartedRun(id=ending.id, version=ending.version, epoch=old_term.epoch)
    with database.write() as worker:
        end = RunEnd(run=ours, state=RunState.SUCCEEDED)
        assert moves.finish(worker, worker_id=WORKER, ends=[end])
        with impatient_elsewhere(database) as other:
            canceled = moves.cancel(other, operator="me", runs=[assigned, ending])
            worker.execute(text("SET LOCAL lock_timeout = '1s'"))
            assert moves.start(worker, worker_id=WORKER, runs=[assigned]) == {}
        assert canceled == {assigned.id}


@only_on_postgresql
@pytest.mark.parametrize("named", [slice(1), slice(10)], ids=["alone", "in a batch"])
def test_a_worker_does_not_wait_for_a_run_that_another_transaction_holds(
    database: Database, old_term: Term, running: list[RunRef], named: slice
) -> None:
    ours = [
        StartedRun(id=run.id, version=run.version, epoch=old_term.epoch) for run in running[named]
    ]
    reports = [progress.ProgressReport(run=run, processed=1, total=None, number=1) for run in ours]
    ends = [RunEnd(run=run, state=RunState.SUCCEEDED) for run in ours]

    def write() -> tuple[frozenset[int], frozenset[int]]:
        with database.write() as connection:
            reported = progress.report_progress(connection, worker_id=WORKER, reports=reports)
            return reported, moves.finish(connection, worker_id=WORKER, ends=ends)

    with database.write() as connection:
        connection.execute(
            text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {ours[0].id} FOR UPDATE")
        )
        reported, ended = in_background(write).result(30)
    assert reported == ended == {run.id for run in ours[1:]}
