"""One pool for everything: idle connections are given back, and a full server starves no heartbeat."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from select import select

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import TimeoutError as PoolTimeout

from support.databases import PostgresServer, opened
from support.dialects import only_on_postgresql
from support.factories import WORKER, add_worker
from support.moving_clock import MovingClock
from support.threads import at_once, in_background
from support.waiting import wait_until
from tsuzuki.model.errors import Unreachable
from tsuzuki.store import workers
from tsuzuki.store.sql import connection_pool
from tsuzuki.store.sql.connection_pool import (
    CONNECTIONS_MAX,
    IDLE_CHECK_SECONDS,
    REVIEW_SECONDS,
    VITAL_KEPT_SECONDS,
    ConnectionPool,
    pool_of,
)
from tsuzuki.store.sql.database import ConnectionUse, Database, open_database

END_OUR_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
OUR_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def beat(database: Database) -> object:
    with database.statement() as connection:
        return workers.heartbeat(connection, WORKER)


def several_at_once(database: Database, count: int) -> None:
    """So many connections are needed at the same time."""
    gate = threading.Barrier(count)

    def use(_: int) -> None:
        with database.statement() as connection:
            gate.wait(10)
            workers.heartbeat(connection, WORKER)

    at_once(count, use)


def idle(database: Database) -> int:
    return len(pool_of(database.engine)._idle)


class _SeenWhenFree(threading.Condition):
    """Notes after each release what another thread could find: places that are taken, and those for unbounded use."""

    def __init__(self, pool: ConnectionPool) -> None:
        super().__init__()
        self._pool = pool
        self.seen: list[tuple[int, int]] = []

    def __exit__(self, *problem: object) -> None:
        pool = self._pool
        taken = len(pool._idle) + len(pool._in_use) + pool._being_opened
        self.seen.append((taken, pool._unbounded))
        super().__exit__(*problem)  # type: ignore[arg-type]


def test_statements_reads_and_writes_share_one_connection(database: Database) -> None:
    add_worker(database)
    for _ in range(3):
        beat(database)
        with database.read() as connection:
            connection.execute(text("SELECT 1"))
        with database.write() as connection:
            connection.execute(text("SELECT 1"))
    assert idle(database) == 1


def test_a_connection_that_is_opened_keeps_its_place(database: Database) -> None:
    pool = pool_of(database.engine)
    with database.read(), pool.used_for(ConnectionUse.UNBOUNDED):
        pool._changed = changed = _SeenWhenFree(pool)
        with database.read() as connection:
            connection.execute(text("SELECT 1"))
            first, *later = changed.seen
    assert first == (1, 0)
    assert set(later) == {(2, 1)}


def test_a_transaction_on_a_connection_that_was_used_for_single_statements_rolls_back(
    database: Database,
) -> None:
    add_worker(database)
    beat(database)

    def fail() -> None:
        with database.write() as connection:
            connection.execute(text("DELETE FROM tsuzuki_workers"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert beat(database) is not None


@only_on_postgresql
def test_connections_that_are_seldom_used_are_closed(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    several_at_once(database, 6)
    assert idle(database) == 6
    clock.advance(REVIEW_SECONDS)
    beat(database)
    assert idle(database) == 1
    with database.read() as connection:
        # The server ends a session a moment after its client has left.
        wait_until(
            lambda: connection.execute(text(OUR_SESSIONS)).scalar_one() == 0, "they are closed"
        )


@only_on_postgresql
def test_a_connection_that_a_heartbeat_has_used_is_kept(
    database: Database, clock: MovingClock
) -> None:
    """While the work thread holds the other one, a heartbeat would have to open a connection each time."""
    add_worker(database)
    with database.read() as connection:
        connection.execute(text("SELECT 1"))
        with database.used_for(ConnectionUse.VITAL):
            beat(database)
    clock.advance(REVIEW_SECONDS)
    beat(database)
    assert idle(database) == 2
    clock.advance(VITAL_KEPT_SECONDS)
    beat(database)
    assert idle(database) == 1


def test_loops_that_meet_now_and_then_need_no_second_connection(
    live_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "YIELD_SECONDS", 30.0)
    add_worker(live_database)
    pool = pool_of(live_database.engine)
    with live_database.read():
        other = in_background(lambda: beat(live_database))
        wait_until(lambda: len(pool._changed._waiters) == 1, "it waits")  # type: ignore[attr-defined]
    assert other.result(10) is not None
    assert idle(live_database) == 1


def test_one_that_was_in_use_when_all_were_closed_is_closed_when_it_comes_back(
    database: Database,
) -> None:
    pool = pool_of(database.engine)
    with database.statement():
        database.close()
    assert (len(pool._idle), pool.checkedout()) == (0, 0)


@only_on_postgresql
def test_a_connection_that_the_server_closed_while_it_was_idle_is_not_used(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    several_at_once(database, 3)
    raw = [entry.dbapi_connection for _, entry in pool_of(database.engine)._idle]
    with closing(psycopg.connect(_conninfo(database), autocommit=True)) as other:
        other.execute(END_OUR_SESSIONS)
    for one in raw:
        assert one is not None
        assert select([one.pgconn.socket], [], [], 30)[0], "the server has not closed it"
    clock.advance(IDLE_CHECK_SECONDS + 1)
    assert beat(database) is not None
    assert idle(database) == 1


def _conninfo(database: Database) -> str:
    return database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


@only_on_postgresql
def test_one_that_is_put_back_inside_a_transaction_is_closed(database: Database) -> None:
    with database.statement() as connection:
        connection.send("BEGIN")
    assert idle(database) == 0


@only_on_postgresql
def test_a_process_that_uses_all_it_may_open_says_so(
    live_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(connection_pool, "WAIT_SECONDS", 0.01)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(live_database.read())
        with pytest.raises(Unreachable, match="all 3 connections are in use"):
            beat(live_database)
    assert CONNECTIONS_MAX > 3
    add_worker(live_database)
    assert beat(live_database) is not None


@only_on_postgresql
def test_handlers_on_a_new_pool_leave_a_place_for_the_heartbeat(
    live_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker(live_database)
    live_database.close()
    monkeypatch.setattr(connection_pool, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(connection_pool, "WAIT_SECONDS", 0.01)
    pool = pool_of(live_database.engine)
    with pool.used_for(ConnectionUse.UNBOUNDED):
        handlers = [pool.take() for _ in range(2)]
        with pytest.raises(PoolTimeout):
            pool.take()
    with live_database.used_for(ConnectionUse.VITAL):
        assert beat(live_database) is not None
    for entry in handlers:
        pool.put_back(entry)
    assert pool._unbounded == 0


# --- a server without a connection left ---------------------------------------------------------


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresServer]:
    """Ten connections, of which three are for superusers: the tests are that, so they may have all."""
    server = PostgresServer()
    server.allow_connections(10)
    yield server
    server.stop()


@pytest.fixture
def crowded(small_server: PostgresServer) -> Iterator[Database]:
    """A database open with one connection, on a server that has no other left."""
    url = small_server.create()
    with opened(url) as database, ExitStack() as stack:
        add_worker(database)
        others: list[psycopg.Connection] = []
        while True:
            try:
                others.append(stack.enter_context(closing(psycopg.connect(url))))
            except psycopg.OperationalError:
                break
        assert idle(database) == 1
        yield database


def test_no_connection_left_is_an_error_that_says_so(crowded: Database) -> None:
    url = crowded.engine.url.render_as_string(hide_password=False)
    with (
        closing(open_database(url, clock=crowded.clock)) as another,
        pytest.raises(Unreachable, match="has no free connection"),
        another.read(),
    ):
        pass


def test_with_no_connection_left_callers_wait_for_each_other(crowded: Database) -> None:
    """Four threads, one connection."""

    def work(_: int) -> None:
        for _ in range(20):
            beat(crowded)

    at_once(4, work)
    assert idle(crowded) == 1


def test_a_transaction_of_a_handler_does_not_get_the_last_connection(
    crowded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "WAIT_SECONDS", 0.01)
    with (
        pytest.raises(Unreachable, match="has no free connection"),
        crowded.used_for(ConnectionUse.UNBOUNDED),
        crowded.write(),
    ):
        pass
    assert beat(crowded) is not None


def test_a_heartbeat_is_served_before_others_that_wait(crowded: Database) -> None:
    pool = pool_of(crowded.engine)
    served: list[str] = []

    def ordinary() -> None:
        with crowded.read():
            served.append("ordinary")

    def vital() -> None:
        with crowded.used_for(ConnectionUse.VITAL), crowded.statement() as connection:
            workers.heartbeat(connection, WORKER)
            served.append("vital")

    with crowded.read():
        waiting = [in_background(ordinary)]
        wait_until(lambda: len(pool._changed._waiters) == 1, "one waits")  # type: ignore[attr-defined]
        waiting.append(in_background(vital))
        wait_until(lambda: bool(pool._vital_waiting), "the heartbeat waits")
    for one in waiting:
        one.result(20)
    assert served == ["vital", "ordinary"]
