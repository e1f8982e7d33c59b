"""SQLAlchemy's engine for PostgreSQL: psycopg, timeouts that notice a lost network, and session settings."""

from typing import Any

import sqlalchemy
from sqlalchemy import Engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchModuleError

from tsuzuki.model.errors import extra_missing
from tsuzuki.store.sql.database_url import check_parameters, invalid_url

IDLE_TRANSACTION_SECONDS = 60
"""How long a transaction may be idle. There is no lock timeout: a lock wait ends with the transaction that
holds the lock, which this bounds, or as a deadlock."""

UNACKNOWLEDGED_SECONDS = 10
"""TCP user timeout: how long sent data may stay unacknowledged. Keepalives only notice a lost peer on an
idle connection; without this the kernel retransmits for a quarter of an hour."""


def create_engine(url: URL) -> Engine:
    connect_timeout = str(url.query.get("connect_timeout", 5))
    if not connect_timeout.isdecimal():
        raise invalid_url("connect_timeout is a whole number of seconds")
    try:
        engine = sqlalchemy.create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args={
                "connect_timeout": int(connect_timeout),
                "application_name": "tsuzuki",
                "keepalives_idle": 15,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "prepare_threshold": 2,
                "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
            },
            pool_size=8,
            max_overflow=16,
            pool_timeout=30,
            # The connection used last has its statements prepared and planned.
            pool_use_lifo=True,
            # Values of a statement may be secrets, and an error is stored with its run.
            hide_parameters=True,
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise extra_missing(
            "PostgreSQL is asked for, but its driver is not installed",
            extra="postgres",
            code="driver_missing",
        ) from None
    check_parameters(url, _known_parameters())
    event.listen(engine, "connect", _set_up_session)
    return engine


def _known_parameters() -> list[str]:
    """Those of this libpq."""
    from psycopg.pq import Conninfo  # noqa: PLC0415 -- an extra; the engine has just loaded it

    return [option.keyword.decode() for option in Conninfo.get_defaults()]


def _set_up_session(raw: Any, _record: object) -> None:
    # A process that dies or is paused inside a transaction must not hold its row locks for ever: the
    # server ends such a session, and notices a host that is gone without a FIN.
    raw.execute(
        f"SET idle_in_transaction_session_timeout = '{IDLE_TRANSACTION_SECONDS}s';"
        " SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5;"
        " SET tcp_keepalives_count = 3;"
        # The rows of a queue are in memory. At the price of a spinning disk the planner would rather
        # read and sort the whole queue than walk along the index that has it in order.
        " SET random_page_cost = 1.1"
    )
    raw.commit()
