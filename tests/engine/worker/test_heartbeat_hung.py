"""A heartbeat that hangs in the driver, as with a lock or a hung database, is found by a watch over it."""

import pytest
from sqlalchemy import select, update

from support.factories import WORKER, add_worker
from support.moving_clock import NOON
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.settings import EngineSettings, find_setting
from tsuzuki.store.schema.tables import workers
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings().checked()
CHECK_SECONDS = 0.1
CHECKS = round(SETTINGS.continuation_seconds / CHECK_SECONDS)
DEADLINE = SETTINGS.worker_ttl_seconds + SETTINGS.continuation_seconds


def test_a_hung_heartbeat_is_found_by_repeated_checks_and_not_by_time_alone(
    database: Database,
) -> None:
    add_worker(database)
    with database.write() as connection:
        # On SQLite it may go on until a leader has recorded its silence.
        connection.execute(update(workers).values(silence_recorded_at=NOON))
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


def test_it_is_checked_seldom_before_the_deadline_and_often_after_it(database: Database) -> None:
    add_worker(database)
    clock = ManualClock(NOON)
    heartbeat = Heartbeat(
        database=database, clock=clock, settings=lambda: SETTINGS, worker_id=lambda: WORKER
    )
    heartbeat.tick()
    seldom = find_setting("worker_ttl_seconds").minimum
    assert heartbeat.seconds_to_next_check(CHECK_SECONDS) == seldom
    clock.advance(DEADLINE - seldom / 2)
    assert heartbeat.seconds_to_next_check(CHECK_SECONDS) == pytest.approx(seldom / 2)
    clock.advance(seldom / 2)
    assert heartbeat.seconds_to_next_check(CHECK_SECONDS) == CHECK_SECONDS
