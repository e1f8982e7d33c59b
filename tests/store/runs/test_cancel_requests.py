"""No statement of a leader, a heartbeat or an operator waits for the row that a handler's transaction holds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, text

from support.dialects import only_on_postgresql
from support.factories import WORKER, add_worker, read_run, run_in_state, take_lead
from support.leader_writes import LEADER_WRITES
from support.move_functions import MOVERS, states_taken
from support.moving_clock import MovingClock
from support.threads import in_background
from tsuzuki.model.run import new_retry
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import cancel_requests, ownership, runs
from tsuzuki.store.sql.database import Database

RUNNING = RunState.RUNNING


@contextmanager
def impatient(database: Database) -> Iterator[Connection]:
    """A transaction that fails rather than wait for a lock."""
    with database.write() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '1s'"))
        yield connection


@contextmanager
def held_by_handlers(database: Database) -> Iterator[None]:
    """A second session holds every run that is not finished, as handlers' transactions do."""
    with database.engine.connect() as handler:
        handler.execute(text("SELECT 1 FROM tsuzuki_job_runs WHERE finished_at IS NULL FOR UPDATE"))
        yield


def without_waiting(database: Database, write: Callable[[Connection], Any]) -> Any:
    def act() -> Any:
        with impatient(database) as connection:
            return write(connection)

    with held_by_handlers(database):
        return in_background(act).result(30)


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database, lease_seconds=100_000)


@only_on_postgresql
@pytest.mark.parametrize("name", sorted(LEADER_WRITES))
def test_no_write_of_a_leader_waits_for_a_handler(
    database: Database, clock: MovingClock, name: str
) -> None:
    leading = take_lead(database, lease_seconds=100_000)
    write = LEADER_WRITES[name](database, clock, leading)
    without_waiting(database, lambda connection: write(connection, leading))


@only_on_postgresql
@pytest.mark.parametrize("name", sorted(MOVERS))
def test_no_move_waits_for_a_handler(database: Database, term: Term, name: str) -> None:
    run = run_in_state(database, min(states_taken(name)), term)
    assert not without_waiting(database, lambda c: MOVERS[name](c, term, run))
    assert read_run(database, run.id).version == run.version


@only_on_postgresql
def test_a_request_for_confirmation_marks_the_runs_that_no_handler_holds(
    database: Database, term: Term
) -> None:
    held, other = (run_in_state(database, RUNNING, term).id for _ in range(2))
    with database.engine.connect() as handler:
        handler.execute(text(f"SELECT 1 FROM tsuzuki_job_runs WHERE id = {held} FOR UPDATE"))
        with impatient(database) as connection:
            marked = workers.request_confirmation(
                connection, worker_id=WORKER, deadline_seconds=5.0
            )
    assert marked == 1
    assert read_run(database, other).continuation_state == "CONFIRMING"


@only_on_postgresql
def test_a_run_that_its_handler_holds_needs_no_confirmation(database: Database, term: Term) -> None:
    run_in_state(database, RUNNING, term)
    with database.write() as connection:
        workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=5.0)
        assert ownership.count_unconfirmed(connection, WORKER) == 1
    assert without_waiting(database, lambda c: ownership.count_unconfirmed(c, WORKER)) == 0


def test_a_mark_that_was_not_confirmed_in_time_is_renewed(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run_in_state(database, RUNNING, term)
    for expected in (1, 0):
        with database.write() as connection:
            assert expected == workers.request_confirmation(
                connection, worker_id=WORKER, deadline_seconds=5.0
            )
    clock.advance(6)
    with database.write() as connection:
        assert workers.request_confirmation(connection, worker_id=WORKER, deadline_seconds=5.0) == 1


@only_on_postgresql
def test_a_cancel_is_requested_while_a_handler_holds_the_row(
    database: Database, term: Term
) -> None:
    run = run_in_state(database, RUNNING, term)
    without_waiting(
        database,
        lambda c: cancel_requests.add(c, [run.id], reason=Reason.OPERATOR, requested_by="ada"),
    )
    with database.read() as connection:
        assert cancel_requests.of_runs(connection, [run.id])[run.id].requested_by == "ada"


def test_the_first_request_stands_and_is_removed_once(database: Database, term: Term) -> None:
    run = run_in_state(database, RUNNING, term)
    with database.write() as connection:
        for actor in ("ada", "ben"):
            cancel_requests.add(connection, [run.id], reason=Reason.OPERATOR, requested_by=actor)
        (found,) = cancel_requests.page(connection, limit=10)
        assert (found.run_id, found.requested_by) == (run.id, "ada")
        assert cancel_requests.remove(connection, [run.id]) == [found]
        assert cancel_requests.remove(connection, [run.id]) == []


def test_a_run_with_a_request_is_not_retried(database: Database, term: Term) -> None:
    run = read_run(database, run_in_state(database, RunState.FAILED, term).id)
    with database.write() as connection:
        retry = new_retry(run, scheduled_for=database.now(connection))
        cancel_requests.add(connection, [run.id], reason=Reason.OPERATOR, requested_by="ada")
        assert runs.create(connection, [retry]) == [None]
        cancel_requests.remove(connection, [run.id])
        assert runs.create(connection, [retry]) != [None]
