"""What the leader does about what is over: a run is deleted only after its end is counted."""

from datetime import timedelta

import pytest

from support.factories import WORKER, add_worker, run_in_state, take_lead
from support.moving_clock import NOON, MovingClock
from tsuzuki.engine.archive import archivist
from tsuzuki.engine.archive.archivist import Archivist
from tsuzuki.engine.archive.retention import Retention
from tsuzuki.engine.archive.rollups import HourlyRollups
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store import pruning, rollups, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

HOURS = 5
DAY_SECONDS = 86_400


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database, lease_seconds=50.0 * DAY_SECONDS)


def retention(database: Database, clock: MovingClock) -> Retention:
    settings = EngineSettings(run_retention_days=1)
    logs = Archivist(database=database, settings=lambda: settings, archive=None, clock=clock)
    return Retention(rollups=HourlyRollups(database=database), archivist=logs)


def counted(database: Database) -> int:
    with database.read() as connection:
        rows = rollups.hours_between(connection, NOON, NOON + timedelta(days=100))
    return sum(row.counted.runs for row in rows)


def test_runs_that_are_past_their_retention_are_counted_before_they_are_deleted(
    database: Database, term: Term, clock: MovingClock
) -> None:
    """Nothing led for longer than runs are kept: each tick counts one hour, and could delete all runs."""
    for _ in range(HOURS):
        run_in_state(database, RunState.FAILED, term)
        clock.advance(3600)
    clock.advance(40 * DAY_SECONDS)
    duty = retention(database, clock)
    pruned = []
    while True:
        archived = duty.tick(term)
        pruned.append(archived.pruned)
        assert counted(database) >= sum(pruned)
        if not archived.more:
            break
    assert sum(pruned) == counted(database) == HOURS


def test_no_run_is_due_to_be_deleted_while_nothing_is_counted(
    database: Database, term: Term, clock: MovingClock
) -> None:
    run_in_state(database, RunState.FAILED, term)
    clock.advance(40 * DAY_SECONDS)
    with database.read() as connection:
        assert pruning.due(connection, finished_before=clock.now(), limit=10) == []


def test_workers_that_left_are_deleted_after_a_day(
    database: Database, term: Term, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archivist, "GONE_WORKERS_MAX", 2)
    gone = [f"host-{number}-gone" for number in range(3)]
    for worker_id in gone:
        add_worker(database, worker_id)
        with database.write() as connection:
            workers.deregister(connection, worker_id)
    duty = retention(database, clock)
    clock.advance(DAY_SECONDS - 1)
    duty.tick(term)
    assert listed(database) == {WORKER, *gone}
    clock.advance(2)
    while duty.tick(term).more:
        pass
    assert listed(database) == {WORKER}


def listed(database: Database) -> set[str]:
    with database.read() as connection:
        return {worker.id for worker in workers.find(connection, with_gone=True)}
