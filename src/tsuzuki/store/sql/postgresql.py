"""SQLAlchemy's engine for PostgreSQL: psycopg, timeouts that notice a lost network, and session settings.

Connections are in autocommit mode: a transaction is an explicit BEGIN, so one pool serves transactions and
single statements.

Behind a connection pooler (PgBouncer) a session is not ours for longer than a transaction, so nothing is kept in it: no
prepared statement, and settings for one transaction at a time.
"""

import select
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchModuleError

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import UsageError, extra_missing
from tsuzuki.store.sql.autocommit import AutocommitConnection
from tsuzuki.store.sql.connection_pool import ConnectionPool, ConnectionUse, pool_of
from tsuzuki.store.sql.database_url import check_parameters, hosts_of, invalid_url

IDLE_TRANSACTION_SECONDS = 10
IDLE_TRANSACTION_UNBOUNDED_SECONDS = 60
"""How long a transaction of ours may be idle, and one whose length other code decides, such as a handler's. There is no
lock timeout: a lock wait ends with the transaction that holds the lock, which this bounds, or as a deadlock."""

KEEPALIVE_IDLE_SECONDS = 5
KEEPALIVE_INTERVAL_SECONDS = 2
KEEPALIVE_COUNT = 3
"""A peer that is gone without a FIN is noticed on an idle connection after 11 s, by both sides: the server ends the
session then, and with it the locks that a lost host has left."""

UNACKNOWLEDGED_SECONDS = 10
"""TCP user timeout: how long sent data may stay unacknowledged. Keepalives only notice a lost peer on an
idle connection; without this the kernel retransmits for a quarter of an hour."""

SETTINGS = {
    # A process that is paused inside a transaction, or a host that is lost in one, must not hold its row locks for
    # long: the server ends such a session.
    "idle_in_transaction_session_timeout": f"{IDLE_TRANSACTION_SECONDS}s",
    "tcp_keepalives_idle": str(KEEPALIVE_IDLE_SECONDS),
    "tcp_keepalives_interval": str(KEEPALIVE_INTERVAL_SECONDS),
    "tcp_keepalives_count": str(KEEPALIVE_COUNT),
    "tcp_user_timeout": f"{UNACKNOWLEDGED_SECONDS}s",
    # The rows of a queue are in memory. At the price of a spinning disk the planner would rather read and sort the
    # whole queue than walk along the index that has it in order.
    "random_page_cost": "1.1",
    # Not what the server or the role has as its default: times near the year 10000 cannot be read in a zone east of
    # Greenwich, and guarded updates expect to see what others have committed meanwhile.
    "TimeZone": "UTC",
    "default_transaction_isolation": "read committed",
}
"""Of each session of ours."""

SETTINGS_OF_A_TRANSACTION = ("idle_in_transaction_session_timeout", "random_page_cost", "TimeZone")
"""Set in each transaction behind a pooler, where its isolation level is part of BEGIN. The others are of the pooler's
own connection."""

NAMES_OF_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT"})
"""That an installation of PostgreSQL may have as its zone."""

CONNECT_TIMEOUT_SECONDS = 4
"""With default settings a heartbeat that could not connect for this long can be followed by another one in time."""

CANCEL_SECONDS = 2.0

OUT_OF_CONNECTIONS = (
    "too many clients already",
    "remaining connection slots",
    "too many connections for",
    "no more connections allowed",  # PgBouncer
)
"""In messages of errors while connecting, where the driver keeps no SQLSTATE."""

NO_TRANSACTION = "tsuzuki_no_transaction"
"""Execution option: each statement commits by itself."""

POOLED = "tsuzuki_pooled"
"""Kept with a connection: a pooler stands between it and the server."""

OTHER_DEFAULTS = "tsuzuki_other_defaults"
"""Kept with a connection to a pooler: the server's zone or isolation level is not the one that we need, so that each
statement is sent in a transaction."""

PROGRAM = "tsuzuki"

DISK_FULL = "53100"
"""SQLSTATE."""

TRANSACTION_STATUS_IDLE = 0
"""Of libpq: connected, and without a transaction."""

TRANSACTION_STATUS_FAILED = 3
"""Of libpq: in a transaction in which a statement has failed."""

STATEMENTS_PREPARED_MAX = 300
"""How many statements a connection keeps prepared. One pool sends them all, so more than psycopg's 100."""


class PostgresPool(ConnectionPool):
    def is_clean(self, raw: Any) -> bool:
        return bool(raw.pgconn.transaction_status == TRANSACTION_STATUS_IDLE)

    def is_full(self, problem: BaseException) -> bool:
        return is_out_of_connections(problem)

    def is_closed_by_server(self, raw: Any) -> bool:
        """There is something to read then, though nothing was asked: the end, or first the reason for it. A
        changed setting of the server is told so too; a new connection is no loss."""
        incoming = select.poll()
        incoming.register(raw.pgconn.socket, select.POLLIN)
        return bool(incoming.poll(0))


def is_out_of_connections(problem: BaseException | None) -> bool:
    """Whether the server has no connection left for us."""
    message = str(problem)
    return any(phrase in message for phrase in OUT_OF_CONNECTIONS)


def is_out_of_space(problem: BaseException | None) -> bool:
    """Whether the disk of the server is full."""
    return getattr(problem, "sqlstate", None) == DISK_FULL


def is_standby(problem: BaseException | None) -> bool:
    """Whether every server that answers is a standby: one may be promoted."""
    return "session is read-only" in str(problem) or "hot standby mode" in str(problem)


def answers(engine: Engine) -> bool:
    """Whether a server is there and accepts connections, though maybe not ours: PQping tells it without
    logging in. One that is starting or stopping does not."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415 -- an extra; the engine has loaded it
    from psycopg.pq import PGconn, Ping  # noqa: PLC0415 -- an extra; the engine has loaded it

    _, parameters = engine.dialect.create_connect_args(engine.url)
    parameters = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **parameters}
    parameters.pop("context", None)  # psycopg's own, and not libpq's
    return PGconn.ping(make_conninfo(**parameters).encode()) == Ping.OK


def cancel(raw: Any) -> None:
    """End the statement that another thread executes on this connection. A server that does not answer keeps it."""
    with suppress(Exception):
        raw.cancel_safe(timeout=CANCEL_SECONDS)


def check_commit(raw: Any) -> None:
    """Raises if the transaction on this connection has failed: the server would answer a COMMIT with a ROLLBACK, and
    without an error. The driver knows this without asking the server."""
    if raw.pgconn.transaction_status == TRANSACTION_STATUS_FAILED:
        raise UsageError(
            "cannot commit the transaction: a statement in it failed, and its error was caught",
            hint="Let the error end the transaction, or execute the statement in a savepoint: "
            "connection.begin_nested().",
            code="transaction_failed",
        )


def create_engine(url: URL, clock: Clock) -> Engine:
    connect_timeout = str(url.query.get("connect_timeout", CONNECT_TIMEOUT_SECONDS))
    if not connect_timeout.isdecimal():
        raise invalid_url("connect_timeout must be a whole number of seconds")
    try:
        engine = sqlalchemy.create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args={
                "connect_timeout": int(connect_timeout),
                "application_name": str(url.query.get("application_name", PROGRAM)),
                **_for_several_hosts(url),
                "keepalives_idle": KEEPALIVE_IDLE_SECONDS,
                "keepalives_interval": KEEPALIVE_INTERVAL_SECONDS,
                "keepalives_count": KEEPALIVE_COUNT,
                "prepare_threshold": 2,
                "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
            },
            poolclass=PostgresPool,
            # Values of a statement may be secrets, and an error is stored with its run.
            hide_parameters=True,
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise extra_missing(
            "the PostgreSQL driver is not installed",
            extra="postgres",
            code="driver_missing",
        ) from None
    check_parameters(url, _known_parameters())
    pool_of(engine).clock = clock
    event.listen(engine, "connect", _set_up_session)
    event.listen(engine, "begin", _begin)
    return engine


def name_sessions(engine: Engine, name: str, *, is_key: bool = False) -> None:
    """Connections from now on have this name in `pg_stat_activity`, unless the URL gives one; with `is_key` they are to
    be found by it, so then too."""
    if "application_name" in engine.url.query and not is_key:
        return

    def set_name(_dialect: object, _record: object, _arguments: Any, named: dict[str, Any]) -> None:
        named["application_name"] = f"{PROGRAM} {name}"

    event.listen(engine, "do_connect", set_name)


_END_SESSIONS = sqlalchemy.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = :name AND usename = current_user"
)


def end_sessions(connection: Connection, name: str) -> None:
    """End the sessions of our user that were given this name, also behind a pooler, where a pid says nothing."""
    connection.execute(_END_SESSIONS, {"name": f"{PROGRAM} {name}"})


def _known_parameters() -> list[str]:
    """Those of this libpq."""
    from psycopg.pq import Conninfo  # noqa: PLC0415 -- an extra; the engine has just loaded it

    return [option.keyword.decode() for option in Conninfo.get_defaults()]


def _for_several_hosts(url: URL) -> dict[str, str]:
    """Of several hosts the one that can be written to is used: after a failover the new primary."""
    is_said = "target_session_attrs" in url.query or not hosts_of(url)
    return {} if is_said else {"target_session_attrs": "read-write"}


_VALUES = ", ".join(f"('{name}', '{value}')" for name, value in SETTINGS.items())
_SET_UP = (
    "SELECT count(set_config(name, value, false)), current_setting('TimeZone'),"
    f" current_setting('default_transaction_isolation') FROM (VALUES {_VALUES}) AS settings (name, value)"
    " WHERE pg_backend_pid() = {pid}"
)
"""Reads the defaults too. Sets nothing if the server's process is not the one that we were told of: then it is a pooler
that we are connected to, and the session belongs to other programs too."""

_BEGIN_POOLED = "BEGIN ISOLATION LEVEL READ COMMITTED; " + "; ".join(
    f"SET LOCAL {name} = '{SETTINGS[name]}'" for name in SETTINGS_OF_A_TRANSACTION
)


def _set_up_session(raw: Any, record: Any) -> None:
    raw.autocommit = True
    raw.prepared_max = STATEMENTS_PREPARED_MAX
    settings_made, *defaults = raw.execute(_SET_UP.format(pid=raw.info.backend_pid)).fetchone()
    record.info[POOLED] = settings_made == 0
    if record.info[POOLED]:
        raw.prepare_threshold = None
        zone, isolation_level = defaults
        is_ours = zone in NAMES_OF_UTC and isolation_level == "read committed"
        record.info[OTHER_DEFAULTS] = not is_ours


_IDLE_LONGER = (
    f"; SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_UNBOUNDED_SECONDS}s'"
)


def begin_statement(info: Mapping[Any, Any], use: ConnectionUse = ConnectionUse.SHORT) -> str:
    """How a transaction for this use is opened on the connection with which `info` is kept. One round trip."""
    begin = _BEGIN_POOLED if info.get(POOLED) else "BEGIN"
    return begin + _IDLE_LONGER if use is ConnectionUse.UNBOUNDED else begin


@contextmanager
def transaction(connection: AutocommitConnection) -> Iterator[None]:
    """A transaction that is committed on leaving. Raises if a statement in it has failed. After an error the
    connection must be discarded, and the transaction with it."""
    connection.send(begin_statement(connection.info))
    yield
    check_commit(connection.raw)
    connection.send("COMMIT")


def single_statement(connection: AutocommitConnection) -> AbstractContextManager[None]:
    """For a single statement: a transaction if its session has other defaults than ours."""
    return transaction(connection) if connection.info.get(OTHER_DEFAULTS) else nullcontext()


def _begin(connection: Connection) -> None:
    has_defaults = not connection.info.get(OTHER_DEFAULTS)
    if has_defaults and connection.get_execution_options().get(NO_TRANSACTION):
        return
    raw: Any = connection.connection.driver_connection
    try:
        use = pool_of(connection.engine).use
        raw.execute(begin_statement(connection.info, use), prepare=False)
    except connection.dialect.loaded_dbapi.Error as problem:
        # What SQLAlchemy does: wrap the error, and drop the connections of a server that is gone.
        connection._handle_dbapi_exception(problem, "BEGIN", None, None, None)  # noqa: SLF001 -- no public way
        raise
