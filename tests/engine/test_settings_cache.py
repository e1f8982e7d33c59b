"""The cache of the settings: read again when it is old, also in a process that only works."""

import pytest

from support.engines import Engines
from support.moving_clock import MovingClock
from support.unreliable_database import UnreliableDatabase
from support.waiting import wait_until
from tsuzuki.engine.settings_cache import SETTINGS_MAX_AGE_SECONDS, SettingsCache
from tsuzuki.model.errors import Unreachable
from tsuzuki.store import settings
from tsuzuki.store.sql.database import Database


def put(database: Database, ttl_seconds: float) -> None:
    with database.write() as connection:
        settings.put(connection, key="worker_ttl_seconds", value=ttl_seconds, actor="test")


def test_settings_are_read_again_when_they_are_old_and_not_before(
    database: Database, clock: MovingClock
) -> None:
    cache = SettingsCache(database=database, clock=clock)
    put(database, 17.0)
    cache.refresh()
    assert cache().worker_ttl_seconds == 17.0
    put(database, 18.0)
    clock.advance(SETTINGS_MAX_AGE_SECONDS - 0.001)
    cache.refresh()
    assert cache().worker_ttl_seconds == 17.0
    clock.advance(0.001)
    cache.refresh()
    assert cache().worker_ttl_seconds == 18.0


def test_while_the_database_is_unreachable_the_cached_settings_stay_in_use(
    database: Database, clock: MovingClock
) -> None:
    faulty = UnreliableDatabase(database)
    cache = SettingsCache(database=faulty, clock=clock)
    put(database, 17.0)
    cache.refresh()
    clock.advance(SETTINGS_MAX_AGE_SECONDS)
    faulty.is_away = True
    with pytest.raises(Unreachable):
        cache.refresh()
    assert cache().worker_ttl_seconds == 17.0


def test_the_schema_is_checked_whenever_the_settings_are_read(
    database: Database, clock: MovingClock
) -> None:
    checked: list[float] = []
    cache = SettingsCache(
        database=database,
        clock=clock,
        check_schema=lambda _connection: checked.append(clock.monotonic()),
    )
    for _ in range(4):
        cache.refresh()
        clock.advance(SETTINGS_MAX_AGE_SECONDS / 2)
    assert checked == [0.0, SETTINGS_MAX_AGE_SECONDS]


def test_changed_settings_reach_also_a_process_that_only_works(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that judges by new settings a worker that lives by old ones judges too early."""
    monkeypatch.setattr("tsuzuki.engine.settings_cache.SETTINGS_MAX_AGE_SECONDS", 0.0)
    worker = engines.start(lead=False)
    engines.put(worker_ttl_seconds=17.0)
    wait_until(lambda: worker.settings().worker_ttl_seconds == 17.0, "the worker knows")
