"""Redis is emptied, killed and restarted under load: no run is lost or retried because of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemons import Daemons, be_quick, started_on
from support.load import Load
from support.redis_server import RedisServer
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import runs as stored
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def helped(
    database_url: str, quick_database: Database, redis: RedisServer, tmp_path: Path
) -> Iterator[Daemons]:
    """Processes that use this Redis."""
    environ = {"TSUZUKI_REDIS_URL": redis.url}
    with started_on(database_url, tmp_path, environ=environ) as daemons:
        yield daemons


def test_a_redis_that_is_emptied_and_dies_and_comes_back_under_load_costs_nothing(
    quick_database: Database, helped: Daemons, redis: RedisServer, tmp_path: Path
) -> None:
    be_quick(quick_database, worker_ttl_seconds=3.0)
    every_daemon = helped.start_together(["up"], ["up"], ["worker"])
    with Load(quick_database, tmp_path, seconds=0.3) as load:
        load.wait_for_ends(10)
        redis.flush()
        load.wait_for_ends(10)
        redis.kill()
        for daemon in every_daemon:
            daemon.wait_for("service unreachable, continuing without it")
        load.wait_for_ends(70)  # at twenty a second: for longer than a silent worker is kept
        redis.start()
        for daemon in every_daemon:
            daemon.wait_for("service available again")
        load.wait_for_ends(10)
    runs = load.settle()
    assert [(run.id, run.attempt, run.reason, run.error) for run in runs if run.attempt > 1] == []
    with quick_database.read() as connection:
        moved = {move.to_state for run in runs for move in stored.history(connection, run.id)}
    assert RunState.ORPHANED not in moved
    assert heartbeats_in(redis) == {daemon.worker_id for daemon in every_daemon}
    assert helped.are_all_up()


def heartbeats_in(redis: RedisServer) -> set[str]:
    """The workers that have a heartbeat there."""
    with redis.client() as client:
        return {str(key).rsplit(":", 1)[1] for key in client.scan_iter("tsuzuki:worker:beat:*")}
