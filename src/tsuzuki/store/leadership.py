"""Who leads. One row; taking it raises the epoch, and every write of a leader names its epoch.

`held` is the fence: put into a statement's WHERE it lets the statement take effect only while the
epoch is the current one. On PostgreSQL it also locks the row FOR KEY SHARE until the transaction ends,
so a new leader's epoch begins only after the last write of the old one is in or out; SQLite has one
writer at a time anyway.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    Text,
    and_,
    bindparam,
    exists,
    literal,
    or_,
    select,
    update,
)

from tsuzuki.store.database import AHEAD_SECONDS, db_now
from tsuzuki.store.line import Sender
from tsuzuki.store.tables import leadership
from tsuzuki.store.types import UtcTime


@dataclass(frozen=True, kw_only=True)
class Term:
    """One holder's time as leader. Carried by every leader write."""

    holder: str
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Leadership:
    """The row as it is. `is_valid` by the database's clock, at the moment of reading; not if it would last
    longer than it was given for, for then nobody knows."""

    epoch: int
    holder: str | None
    lease_expires_at: datetime
    taken_at: datetime | None
    is_valid: bool


def held(term: Term) -> ColumnElement[bool]:
    """True while `term` is the current one, and for the rest of the transaction."""
    return epoch_is(literal(term.epoch, type_=BigInteger()))


def epoch_is(epoch: ColumnElement[int]) -> ColumnElement[bool]:
    # Not a CTE: Python's sqlite3 does not count the rows of a statement that begins with WITH.
    return exists(
        select(leadership.c.epoch)
        .where(leadership.c.id == 1, leadership.c.epoch == epoch)
        .with_for_update(read=True, key_share=True)
    )


HELD = epoch_is(bindparam("epoch", type_=BigInteger()))
"""The same for a statement that is written once and kept: it is given the term's `epoch` each time."""

_CURRENT = select(
    leadership.c.epoch,
    leadership.c.holder,
    leadership.c.lease_expires_at,
    leadership.c.taken_at,
    and_(
        leadership.c.lease_expires_at > db_now(),
        leadership.c.lease_expires_at <= db_now(leadership.c.lease_seconds + AHEAD_SECONDS),
    ).label("is_valid"),
).where(leadership.c.id == 1)


def current(connection: Connection) -> Leadership:
    row = connection.execute(_CURRENT).one()
    return Leadership(
        epoch=row.epoch,
        holder=row.holder,
        lease_expires_at=row.lease_expires_at,
        taken_at=row.taken_at,
        is_valid=bool(row.is_valid) and row.holder is not None,
    )


_LEFT = select(
    leadership.c.holder, leadership.c.lease_expires_at, leadership.c.lease_seconds, db_now()
).where(leadership.c.id == 1)


class Left(NamedTuple):
    """How long the present leader's lease still lasts, if it is not renewed; 0 if nobody leads.
    `is_possible` is false if that is longer than it was given for: the clock was put back since."""

    seconds: float
    is_possible: bool
    expires_at: datetime


def lease_left(connection: Connection) -> Left:
    holder, expires_at, given_seconds, now = connection.execute(_LEFT).one()
    left: float = (expires_at - now).total_seconds()
    seconds = max(left, 0.0) if holder is not None else 0.0
    return Left(seconds, seconds <= given_seconds + AHEAD_SECONDS, expires_at)


_CUT = (
    update(leadership)
    .where(
        leadership.c.id == 1,
        leadership.c.lease_expires_at == bindparam("seen", type_=UtcTime()),
    )
    .values(lease_expires_at=db_now(leadership.c.lease_seconds))
)


def cut_to_measure(connection: Sender, left: Left) -> None:
    """A lease ends no later than it was given for, counted from now. Whoever holds it believes in it no longer
    than that, by a clock that nobody puts back; if it lives it renews it as ever, and what was renewed since
    it was looked at is left alone."""
    connection.execute(_CUT, {"seen": left.expires_at})


_LEASE_SECONDS = bindparam("lease_seconds", type_=Float())
_LEASE_END = db_now(_LEASE_SECONDS)
_TAKE = (
    update(leadership)
    .where(
        leadership.c.id == 1,
        or_(leadership.c.holder.is_(None), leadership.c.lease_expires_at <= db_now()),
    )
    .values(
        epoch=leadership.c.epoch + 1,
        holder=bindparam("me", type_=Text()),
        lease_expires_at=_LEASE_END,
        lease_seconds=_LEASE_SECONDS,
        taken_at=db_now(),
    )
    .returning(leadership.c.epoch)
)


def take(connection: Sender, *, holder: str, lease_seconds: float) -> Term | None:
    """Become leader if nobody is. None means somebody else is, or was quicker."""
    asked = {"me": holder, "lease_seconds": lease_seconds}
    epoch = connection.execute(_TAKE, asked).scalar_one_or_none()
    return None if epoch is None else Term(holder=holder, epoch=epoch)


_OURS = (
    leadership.c.id == 1,
    leadership.c.epoch == bindparam("our_epoch", type_=BigInteger()),
    leadership.c.holder == bindparam("me", type_=Text()),
)
_RENEW = (
    update(leadership)
    .where(*_OURS, leadership.c.lease_expires_at > db_now())
    .values(lease_expires_at=_LEASE_END, lease_seconds=_LEASE_SECONDS)
)
_RELEASE = update(leadership).where(*_OURS).values(holder=None, lease_expires_at=db_now())


def renew(connection: Sender, *, term: Term, lease_seconds: float) -> bool:
    """Stay leader. False: the lease ran out or another took it; the term is over for good."""
    asked = {"our_epoch": term.epoch, "me": term.holder, "lease_seconds": lease_seconds}
    return connection.execute(_RENEW, asked).rowcount == 1


def release(connection: Connection, *, term: Term) -> bool:
    """Step down, so that another can lead at once."""
    asked = {"our_epoch": term.epoch, "me": term.holder}
    return connection.execute(_RELEASE, asked).rowcount == 1


def depose(connection: Connection) -> int | None:
    """End the current term from outside, as an operator does. Answers the epoch that ended."""
    return connection.execute(
        update(leadership)
        .where(leadership.c.id == 1, leadership.c.holder.is_not(None))
        .values(holder=None, lease_expires_at=db_now())
        .returning(leadership.c.epoch)
    ).scalar_one_or_none()
