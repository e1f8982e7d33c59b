"""Liveness of workers as SQL conditions: registered, present, silent, with a recent or a future heartbeat.

A heartbeat is compared by the database's clock. One in the future of that clock was written before the clock
was set back (clock skew): its age is unknown. These conditions decide about runs, so they take it as recent; the
leader sets such heartbeats to now before it judges (`workers.reset_future_heartbeats`, a locked row in the next
round), so that a dead worker is noticed as soon as any other. `Worker.is_silent` only reports, and does not take
it as a sign of life.
"""

from sqlalchemy import ColumnElement, Float, bindparam, case, func, literal_column

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


def is_registered() -> ColumnElement[bool]:
    """The worker has not left for good."""
    return workers.c.state != WorkerState.GONE


def is_present() -> ColumnElement[bool]:
    """The worker is attached, or finishes what it has."""
    return in_states(WorkerState.ATTACHED, WorkerState.DRAINING)


def has_recent_heartbeat(
    minus_ttl: float | ColumnElement[float] = MINUS_TTL,
) -> ColumnElement[bool]:
    """Its last heartbeat is younger than the TTL."""
    return workers.c.heartbeat_at > db_now(minus_ttl)


def is_silent(minus_ttl: float | ColumnElement[float] = MINUS_TTL) -> ColumnElement[bool]:
    return workers.c.heartbeat_at <= db_now(minus_ttl)


def is_not_dead() -> ColumnElement[bool]:
    """No process has recorded its death."""
    return workers.c.died_at.is_(None)


LOST_AFTER = func.coalesce(workers.c.ttl_seconds + workers.c.grace_seconds, 0.0)
"""The silence after which a worker has stopped its runs, by the settings that it last confirmed."""


def at_least(
    minus_seconds: ColumnElement[float], confirmed: ColumnElement[float]
) -> ColumnElement[float]:
    """A setting as a negative number of seconds, or what a worker confirmed if that is longer: until a worker has
    read a shorter setting, it relies on the longer one."""
    return case((minus_seconds < -confirmed, minus_seconds), else_=-confirmed)


def has_future_heartbeat() -> ColumnElement[bool]:
    """Its last heartbeat is in the future: the database's clock was set back since (clock skew)."""
    return workers.c.heartbeat_at > db_now(CLOCK_TOLERANCE_SECONDS)
