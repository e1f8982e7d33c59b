"""PostgreSQL and Redis are restarted again and again: each line on stderr stays one event of the log, and what was
opened because of it is closed again."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from processes.test_dying import add_command
from support.daemons import Daemon, Daemons, be_quick, eventually, started_on
from support.databases import PostgresServer, opened
from support.load import Load
from support.redis_server import RedisServer
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

RESTARTS = ("fast", "immediate", "fast", "immediate")
CONNECTIONS_IDLE = range(2, 4)
"""Of one process: one listens, one works; one that a heartbeat has used is kept for a while."""

SESSIONS = text(
    "SELECT application_name FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def database(own_server: PostgresServer) -> Iterator[Database]:
    with opened(own_server.create()) as database:
        be_quick(database)
        yield database


@pytest.fixture
def daemons(database: Database, redis: RedisServer, tmp_path: Path) -> Iterator[Daemons]:
    url = database.engine.url.render_as_string(hide_password=False)
    environ = {"TSUZUKI_REDIS_URL": redis.url}
    with started_on(url, tmp_path, environ=environ) as daemons:
        yield daemons


def open_files(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def files_besides_sessions(database: Database, daemon: Daemon) -> int:
    """How many files a process has open, without its connections to the database: it may have kept one more."""
    sessions = sum(str(daemon.process.pid) in name for name in session_names(database))
    return open_files(daemon) - sessions


def threads(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/task").iterdir()))


def session_names(database: Database) -> list[str]:
    """Of the other processes: this one gives its own connections back first."""
    database.engine.dispose()
    with database.read() as connection:
        return sorted(connection.execute(SESSIONS).scalars())


def have_idle_connections_only(database: Database, count: int) -> bool:
    sessions = len(session_names(database))
    return CONNECTIONS_IDLE.start * count <= sessions <= (CONNECTIONS_IDLE.stop - 1) * count


def test_restarts_leave_one_event_per_line_and_nothing_open(
    database: Database,
    daemons: Daemons,
    own_server: PostgresServer,
    redis: RedisServer,
    tmp_path: Path,
) -> None:
    every_daemon = daemons.start_together(["up"], ["worker"])
    load = Load(database, tmp_path, seconds=0.3)
    load.submit_at_once(40)
    load.wait_for_all()
    eventually(lambda: have_idle_connections_only(database, 2), what="idle")
    before = [(files_besides_sessions(database, one), threads(one)) for one in every_daemon]
    with load:
        for how in RESTARTS:
            own_server.halt(how=how)
            redis.kill()
            own_server.start_again()
            redis.start()
            load.wait_for_ends(10)
            redis.flush()
    load.settle()
    assert daemons.are_all_up()
    for daemon in every_daemon:
        assert daemon.other_lines == []
        assert [event for event in daemon.events if "traceback" in event] == []
        assert [event for event in daemon.events if "Traceback" in str(event)] == []
    eventually(lambda: have_idle_connections_only(database, 2), what="idle")
    for (files, count), daemon in zip(before, every_daemon, strict=True):
        eventually(
            lambda d=daemon, n=files: files_besides_sessions(database, d) <= n,  # type: ignore[misc]
            what=f"{files} open files besides its sessions",
        )
        eventually(lambda d=daemon, n=count: threads(d) <= n, what=f"{count} threads")  # type: ignore[misc]
    pids = sorted(daemon.process.pid for daemon in every_daemon)
    named = {re.sub(r" \S+:", " ", name) for name in session_names(database)}
    assert named == {f"tsuzuki up {pids[0]}", f"tsuzuki worker {pids[1]}"}


def test_a_server_without_a_connection_left_costs_neither_lease_nor_worker(
    database: Database, daemons: Daemons, own_server: PostgresServer
) -> None:
    own_server.allow_connections(12)
    database.engine.dispose()  # its connections ended with the restart
    daemon = daemons.start("up")
    daemon.wait_for("leading")
    runs = Runs(database=database, actor="test")
    add_command(database, "brief", "true")
    with ExitStack() as others:
        take_all_connections(own_server, others)
        ids = [runs.submit(Request(job="brief")).run_id for _ in range(20)]
        ended = [runs.wait(run_id, timeout_seconds=120) for run_id in ids]
        take_all_connections(own_server, others)
        renewed = lease_ends_at(database)
        eventually(lambda: lease_ends_at(database) > renewed, what="a renewal of the lease")
    assert {run.state for run in ended} == {RunState.SUCCEEDED}
    assert {run.assigned_worker_id for run in ended} == {daemon.worker_id}
    lost = ("no longer the leader", "detached: stopping all runs")
    assert [daemon.count(event) for event in lost] == [0, 0]
    assert daemon.other_lines == []


def take_all_connections(server: PostgresServer, stack: ExitStack) -> None:
    with suppress(psycopg.OperationalError):
        while True:
            stack.enter_context(closing(psycopg.connect(server.url("postgres"))))


def lease_ends_at(database: Database) -> datetime:
    with database.read() as connection:
        ends_at: datetime = connection.execute(
            text("SELECT lease_expires_at FROM tsuzuki_leadership")
        ).scalar_one()
    return ends_at
