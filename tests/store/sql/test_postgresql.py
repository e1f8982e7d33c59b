"""Sessions on PostgreSQL: a lost network ends them soon, and the server's defaults do not change how they work."""

import os
import socket

import psycopg
import pytest
from sqlalchemy import text

from support.databases import PostgresServer, database_name, opened
from support.proxy import Proxy
from support.waiting import wait_until
from tsuzuki.model.errors import Unreachable
from tsuzuki.store.sql.database import ConnectionUse
from tsuzuki.store.sql.postgresql import (
    IDLE_TRANSACTION_SECONDS,
    IDLE_TRANSACTION_UNBOUNDED_SECONDS,
    SETTINGS,
    UNACKNOWLEDGED_SECONDS,
)


def test_what_was_sent_and_never_arrives_ends_the_connection_soon(
    postgres: PostgresServer,
) -> None:
    with (
        Proxy(postgres.socket_file) as proxy,
        opened(proxy.url("postgres")) as database,
        database.read() as connection,
    ):
        descriptor = connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
        with socket.socket(fileno=os.dup(descriptor)) as ours:
            waits = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert waits == UNACKNOWLEDGED_SECONDS * 1000


def test_defaults_of_the_server_do_not_reach_a_session(postgres: PostgresServer) -> None:
    url = postgres.create(())
    name = database_name(url)
    with psycopg.connect(url, autocommit=True) as admin:
        for setting in ("TimeZone = 'Asia/Tokyo'", "default_transaction_isolation = serializable"):
            admin.execute(f"ALTER DATABASE {name} SET {setting}".encode())
    with opened(url) as database, database.read() as connection:
        shown = [
            connection.execute(text(f"SHOW {setting}")).scalar_one()
            for setting in ("TimeZone", "transaction_isolation")
        ]
        moment = connection.execute(text("SELECT timestamptz '9999-12-31 23:59:59+00'"))
        assert moment.scalar_one().year == 9999
    assert shown == ["UTC", "read committed"]
    postgres.drop(url)


IDLE = "idle_in_transaction_session_timeout"


def test_transactions_of_handlers_may_be_idle_for_longer_than_those_of_the_engine(
    postgres: PostgresServer,
) -> None:
    with opened(postgres.create(())) as database:
        for use, expected in (
            (ConnectionUse.SHORT, IDLE_TRANSACTION_SECONDS),
            (ConnectionUse.UNBOUNDED, IDLE_TRANSACTION_UNBOUNDED_SECONDS),
            (ConnectionUse.VITAL, IDLE_TRANSACTION_SECONDS),
        ):
            with database.used_for(use), database.write() as connection:
                seconds = text(f"SELECT extract(epoch FROM current_setting('{IDLE}')::interval)")
                assert connection.execute(seconds).scalar_one() == expected


def test_a_lost_host_is_noticed_within_a_few_seconds(postgres: PostgresServer) -> None:
    with (
        Proxy(postgres.socket_file) as proxy,
        opened(proxy.url("postgres")) as database,
        database.read() as connection,
    ):
        descriptor = connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
        with socket.socket(fileno=os.dup(descriptor)) as ours:
            idle, interval, count = (
                ours.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
    assert idle + interval * count <= 15
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
    assert [int(SETTINGS[name]) for name in names] == [idle, interval, count]


def test_a_session_that_the_server_ends_in_an_idle_transaction_is_lost_and_replaced(
    postgres: PostgresServer,
) -> None:
    url = postgres.create(())
    with opened(url) as database, psycopg.connect(url, autocommit=True) as other:

        def is_gone(pid: int) -> bool:
            found = other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
            return found.fetchone() is None

        def stay_idle() -> None:
            with database.write() as connection:
                pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                connection.execute(text(f"SET LOCAL {IDLE} = '1ms'"))
                wait_until(lambda: is_gone(pid), "the server has ended the session")
                connection.execute(text("SELECT 1"))

        with pytest.raises(Unreachable):
            stay_idle()
        with database.write() as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
