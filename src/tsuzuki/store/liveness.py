"""Liveness of workers as SQL conditions: present, heard recently, silent, or heard in the future.

A heartbeat is compared by the database's clock. One that lies ahead of it was written before that clock
was put back (clock skew): nobody knows how old it is. The leader sets such heartbeats to now before it
judges (`workers.reset_future_heartbeats`), so that a dead worker is noticed as soon as any other.
`Worker.is_silent` is the same rule in Python.
"""

from sqlalchemy import ColumnElement, Float, bindparam, literal_column

from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.schema.tables import workers
from tsuzuki.store.sql.clock import db_now

MINUS_TTL = bindparam("minus_ttl", type_=Float())
"""For prepared statements: how long a worker may be silent, as a negative number of seconds."""


def in_states(*states: WorkerState) -> ColumnElement[bool]:
    """The worker is in one of these states; as literals, so that the statement can be prepared."""
    names: list[ColumnElement[str]] = [literal_column(f"'{state.value}'") for state in states]
    return workers.c.state.in_(names)


def is_present() -> ColumnElement[bool]:
    """The worker is attached, or finishes what it has."""
    return in_states(WorkerState.ATTACHED, WorkerState.DRAINING)


def is_heard(minus_ttl: float | ColumnElement[float] = MINUS_TTL) -> ColumnElement[bool]:
    """Its last heartbeat is younger than the ttl."""
    return workers.c.heartbeat_at > db_now(minus_ttl)


def is_silent(minus_ttl: float | ColumnElement[float] = MINUS_TTL) -> ColumnElement[bool]:
    return workers.c.heartbeat_at <= db_now(minus_ttl)


def is_heard_in_future() -> ColumnElement[bool]:
    """Its last heartbeat lies ahead: the database's clock was put back since."""
    return workers.c.heartbeat_at > db_now(CLOCK_TOLERANCE_SECONDS)
