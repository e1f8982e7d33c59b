"""A recorded death lets the rescuer take runs without judging silence, and nothing else does."""

from datetime import timedelta

import pytest

from support.factories import WORKER, add_worker, read_run, run_in_state
from support.moving_clock import MovingClock
from support.rescuing import (
    SETTINGS,
    a_rescuer,
    heartbeat,
    request_confirmation,
    retry_of,
    start_on,
)
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")

CONFIRMING_SECONDS = SETTINGS.continuation_seconds


def add_process(database: Database, worker_id: str, *, host: str = "host") -> None:
    with database.write() as connection:
        workers.register(
            connection,
            worker_id=worker_id,
            host=host,
            pid=1,
            capacity=10,
            tags=frozenset(),
            software_version="test",
            process_name=worker_id,
            works_by=SETTINGS,
        )


def record_death(database: Database, *names: str) -> None:
    with database.write() as connection:
        assert workers.record_deaths(connection, names)


def never(_read_time: object) -> bool:
    return False


@pytest.fixture(autouse=True)
def worker(database: Database) -> None:
    add_process(database, WORKER)


def test_a_running_run_of_a_dead_worker_is_failed_and_retried_at_once(
    database: Database, term: Term
) -> None:
    """Also by a leader that may not judge silence yet, and on SQLite without a notice."""
    run = run_in_state(database, RunState.RUNNING, term)
    record_death(database, WORKER)
    rescued = a_rescuer(database).tick(term, may_judge=never)
    assert (rescued.failed, rescued.retries) == (1, 1)
    after = read_run(database, run.id)
    assert (after.state, after.reason) == (RunState.FAILED, Reason.WORKER_LOST)
    retry = retry_of(database, run.id)
    assert retry is not None
    assert retry.scheduled_for <= read_time(database)


def read_time(database: Database) -> object:
    with database.read() as connection:
        return database.now(connection) + timedelta(milliseconds=1)


def test_a_run_that_was_not_started_is_orphaned_after_the_time_for_its_start(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    record_death(database, WORKER)
    rescuer = a_rescuer(database)
    assert rescuer.tick(term, may_judge=never).orphaned == 0
    clock.advance(SETTINGS.reassign_after_seconds)
    assert rescuer.tick(term, may_judge=never).orphaned == 1
    assert read_run(database, run.id).state is RunState.ORPHANED


def test_a_run_that_is_being_confirmed_waits_for_its_deadline(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    request_confirmation(database, CONFIRMING_SECONDS)
    record_death(database, WORKER)
    rescuer = a_rescuer(database)
    assert rescuer.tick(term, may_judge=never).failed == 0
    assert read_run(database, run.id).state is RunState.RUNNING
    clock.advance(CONFIRMING_SECONDS)
    assert rescuer.tick(term, may_judge=never).failed == 1


def test_runs_of_other_workers_are_left_alone(database: Database, term: Term) -> None:
    add_process(database, "host-2-silent")
    first = run_in_state(database, RunState.RUNNING, term)
    second = run_in_state(database, RunState.PENDING, term)
    start_on(database, term, second.id, "host-3-other")
    record_death(database, "host-2-silent")
    assert a_rescuer(database).tick(term, may_judge=never).failed == 0
    assert {read_run(database, run.id).state for run in (first, second)} == {RunState.RUNNING}


def test_a_worker_that_is_recorded_as_dead_cannot_come_back(database: Database, term: Term) -> None:
    """Its recorder was wrong: it learns so from its heartbeat, stops, and registers under another id."""
    record_death(database, WORKER)
    with database.write() as connection:
        assert workers.heartbeat(connection, WORKER) is None
    assert a_rescuer(database).tick(term).reattached == 0
    add_worker(database, "host-1-again")
    heartbeat(database, "host-1-again")


@pytest.mark.parametrize(
    ("host", "seconds_later", "counted"),
    [("host", 0.0, 0), ("host", 0.9, 0), ("host", 1.1, 1), ("another", 0.0, 1)],
)
def test_a_loss_counts_unless_another_process_of_the_host_died_too(
    database: Database,
    clock: MovingClock,
    term: Term,
    host: str,
    seconds_later: float,
    counted: int,
) -> None:
    add_process(database, "host-2-bbbb", host=host)
    run = run_in_state(database, RunState.RUNNING, term)
    record_death(database, "host-2-bbbb")
    clock.advance(seconds_later)
    record_death(database, WORKER)
    a_rescuer(database).tick(term, may_judge=never)
    retry = retry_of(database, run.id)
    assert retry is not None
    assert (retry.losses, retry.losses_free) == (counted, 1 - counted)
