"""Liveness: which worker, leader and run is taken for dead, and which is not."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    read_run,
    run_in_state,
    take_lead,
)
from support.moving_clock import MovingClock
from support.waiting import wait_until
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.services.liveness import Liveness, is_running
from tsuzuki.store import workers
from tsuzuki.store.schema import tables
from tsuzuki.store.sql.database import Database

TTL_SECONDS = 6.0


@pytest.fixture
def liveness(database: Database) -> Liveness:
    """As seen from the machine of the worker."""
    return Liveness(database=database, host="host")


@pytest.fixture
def zombie() -> Iterator[int]:
    """A process that was killed and is not reaped by its parent, which is this one."""
    process = subprocess.Popen(["sleep", "60"])
    process.kill()
    wait_until(
        lambda: ") Z " in Path(f"/proc/{process.pid}/stat").read_text(), "the process is a zombie"
    )
    yield process.pid
    process.wait()


def a_dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def lead_and_work(database: Database, *, pid: int) -> None:
    add_worker(database)
    take_lead(database, WORKER)
    with database.write() as connection:
        connection.execute(update(tables.workers).values(pid=pid))


def test_a_process_that_runs_is_running() -> None:
    assert is_running(os.getpid())
    assert is_running(1)


def test_a_process_that_has_ended_is_not_running() -> None:
    assert not is_running(a_dead_pid())


def test_a_zombie_is_not_running(zombie: int) -> None:
    os.kill(zombie, 0)  # it still has an entry in the table of processes
    assert not is_running(zombie)


def test_a_leader_that_also_works_is_enough(database: Database, liveness: Liveness) -> None:
    assert not liveness.has_live_leader_and_worker()
    lead_and_work(database, pid=os.getpid())
    assert liveness.has_live_leader_and_worker()
    assert liveness.term_of_leader_that_died_here() is None


def test_a_leader_that_was_killed_here_is_known_to_be_dead_before_its_lease_ends(
    database: Database, liveness: Liveness, zombie: int
) -> None:
    for pid in (a_dead_pid(), zombie):
        with database.write() as connection:
            connection.execute(tables.workers.delete())
            connection.execute(update(tables.leadership).values(holder=None))
        lead_and_work(database, pid=pid)
        assert liveness.term_of_leader_that_died_here() is not None
        assert not liveness.has_live_leader_and_worker()


def test_of_a_leader_elsewhere_its_process_is_not_asked_for(database: Database) -> None:
    lead_and_work(database, pid=a_dead_pid())
    elsewhere = Liveness(database=database, host="another")
    assert elsewhere.has_live_leader_and_worker()
    assert elsewhere.term_of_leader_that_died_here() is None


def test_a_lease_that_lasts_longer_than_it_was_given_for_is_no_leader(
    database: Database, clock: MovingClock, liveness: Liveness
) -> None:
    lead_and_work(database, pid=os.getpid())
    clock.step(-3600)
    assert not liveness.has_live_leader_and_worker()


def test_a_worker_of_one_job_counts_for_that_job_only(
    database: Database, liveness: Liveness
) -> None:
    lead_and_work(database, pid=os.getpid())
    with database.write() as connection:
        connection.execute(update(tables.workers).values(only_job="mine"))
    assert not liveness.has_live_leader_and_worker()
    assert not liveness.has_live_leader_and_worker("another")
    assert liveness.has_live_leader_and_worker("mine")


def test_a_worker_is_needed_that_takes_runs_and_is_heard(
    database: Database, clock: MovingClock, liveness: Liveness
) -> None:
    lead_and_work(database, pid=os.getpid())
    clock.advance(TTL_SECONDS)
    assert not liveness.has_live_leader_and_worker()
    with database.write() as connection:
        workers.heartbeat(connection, WORKER)
    assert liveness.has_live_leader_and_worker()
    with database.write() as connection:
        workers.drain(connection, [WORKER])
    assert not liveness.has_live_leader_and_worker()


@pytest.mark.parametrize(
    ("pass_seconds", "worked_on"), [(TTL_SECONDS - 1, True), (TTL_SECONDS, False), (-3600, False)]
)
def test_a_run_is_worked_on_while_its_worker_is_heard(
    database: Database,
    clock: MovingClock,
    liveness: Liveness,
    pass_seconds: float,
    worked_on: bool,
) -> None:
    add_worker(database)
    with database.write() as connection:
        connection.execute(update(tables.workers).values(pid=os.getpid()))
    run_id = run_in_state(database, RunState.RUNNING, take_lead(database)).id
    clock.step(pass_seconds)
    with database.read() as connection:
        run = read_run(database, run_id)
        assert liveness.is_worked_on(connection, run, fresh_seconds=10.0) is worked_on


def test_a_worker_of_one_run_works_on_that_run_and_on_its_retry(
    database: Database, clock: MovingClock, liveness: Liveness
) -> None:
    lead_and_work(database, pid=os.getpid())
    job_id = add_job(database)
    first, other = create_run(database, job_id).id, create_run(database, job_id).id
    retry = create_run(database, job_id, trigger=Trigger.RETRY, retry_of=first).id
    with database.write() as connection:
        connection.execute(update(tables.workers).values(only_job="hello", only_run=first))
    clock.advance(1)
    for run_id, worked_on in ((first, True), (other, False), (retry, True)):
        run = read_run(database, run_id)
        with database.read() as connection:
            assert liveness.is_worked_on(connection, run, fresh_seconds=1.0) is worked_on


def test_a_run_that_waits_is_worked_on_while_it_is_fresh_or_could_be_assigned(
    database: Database, clock: MovingClock, liveness: Liveness
) -> None:
    term = take_lead(database)
    run = read_run(database, run_in_state(database, RunState.PENDING, term).id)
    with database.read() as connection:
        assert liveness.is_worked_on(connection, run, fresh_seconds=10.0)
    clock.advance(10)
    with database.read() as connection:
        assert not liveness.is_worked_on(connection, run, fresh_seconds=10.0)
    add_worker(database)
    with database.read() as connection:
        assert liveness.is_worked_on(connection, run, fresh_seconds=10.0)
