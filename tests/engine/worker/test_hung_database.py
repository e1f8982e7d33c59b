"""A database that hangs, and a handler that holds its rows: neither stops the others for ever."""

from random import Random

import pytest
from sqlalchemy import select

from support.factories import WORKER, add_worker, read_run, run_in_state, take_lead
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs, workers
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings().checked()
CHECK_SECONDS = 0.1
CHECKS = round(SETTINGS.continuation_seconds / CHECK_SECONDS)
DEADLINE = SETTINGS.worker_ttl_seconds + SETTINGS.continuation_seconds


def test_a_hung_heartbeat_is_found_by_repeated_checks_and_not_by_time_alone(
    database: Database,
) -> None:
    add_worker(database)
    clock = ManualClock(NOON)
    heartbeat = Heartbeat(
        database=database, clock=clock, settings=lambda: SETTINGS, worker_id=lambda: WORKER
    )
    with database.write() as connection:
        connection.execute(select(workers.c.id).with_for_update())
        hanging = in_background(heartbeat.tick)
        wait_until(lambda: heartbeat.is_sending, "the heartbeat hangs")
        assert not any(heartbeat.looks_hung(CHECK_SECONDS) for _ in range(CHECKS * 2))
        clock.advance(DEADLINE + 3600)
        # An hour may have passed between two checks: the process was paused, and is to ask first.
        found = [heartbeat.looks_hung(CHECK_SECONDS) for _ in range(CHECKS)]
        assert found == [False] * (CHECKS - 1) + [True]
    assert hanging.result(30) is HeartbeatResult.OK
    assert not heartbeat.looks_hung(CHECK_SECONDS)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_locked_row_does_not_hold_up_the_rescue_of_others(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    locked, other = (run_in_state(database, RunState.RUNNING, term) for _ in range(2))
    clock.advance(SETTINGS.lost_after_seconds + 1)
    rescuer = Rescuer(database=database, settings=lambda: SETTINGS, random=Random(1))
    with database.engine.connect() as handler:
        handler.execute(select(job_runs.c.id).where(job_runs.c.id == locked.id).with_for_update())
        assert rescuer.tick(term).failed == 1
        assert read_run(database, other.id).state is RunState.FAILED
        assert read_run(database, locked.id).state is RunState.RUNNING
    assert rescuer.tick(term).failed == 1
    assert read_run(database, locked.id).state is RunState.FAILED
    check_history(database)
