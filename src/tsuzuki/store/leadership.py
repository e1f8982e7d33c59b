"""Who leads. One row; taking it raises the epoch, and every write of a leader names its epoch.

`held` is the fence: put into a statement's WHERE it lets the statement take effect only while the
epoch is the current one. On PostgreSQL it also locks the row FOR KEY SHARE until the transaction ends,
so a new leader's epoch begins only after the last write of the old one is in or out; SQLite has one
writer at a time anyway.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    exists,
    literal,
    or_,
    select,
    update,
)

from tsuzuki.store.database import db_now
from tsuzuki.store.tables import leadership


@dataclass(frozen=True, kw_only=True)
class Term:
    """One holder's time as leader. Carried by every leader write."""

    holder: str
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Leadership:
    """The row as it is. `is_valid` by the database's clock, at the moment of reading."""

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


_CURRENT = select(
    leadership.c.epoch,
    leadership.c.holder,
    leadership.c.lease_expires_at,
    leadership.c.taken_at,
    (leadership.c.lease_expires_at > db_now()).label("is_valid"),
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


def take(connection: Connection, *, holder: str, lease_seconds: float) -> Term | None:
    """Become leader if nobody is. None means somebody else is, or was quicker."""
    epoch = connection.execute(
        update(leadership)
        .where(
            leadership.c.id == 1,
            or_(leadership.c.holder.is_(None), leadership.c.lease_expires_at <= db_now()),
        )
        .values(
            epoch=leadership.c.epoch + 1,
            holder=holder,
            lease_expires_at=db_now(lease_seconds),
            taken_at=db_now(),
        )
        .returning(leadership.c.epoch)
    ).scalar_one_or_none()
    return None if epoch is None else Term(holder=holder, epoch=epoch)


def renew(connection: Connection, *, term: Term, lease_seconds: float) -> bool:
    """Stay leader. False: the lease ran out or another took it; the term is over for good."""
    return (
        connection.execute(
            update(leadership)
            .where(
                leadership.c.id == 1,
                leadership.c.epoch == term.epoch,
                leadership.c.holder == term.holder,
                leadership.c.lease_expires_at > db_now(),
            )
            .values(lease_expires_at=db_now(lease_seconds))
        ).rowcount
        == 1
    )


def release(connection: Connection, *, term: Term) -> bool:
    """Step down, so that another can lead at once."""
    return (
        connection.execute(
            update(leadership)
            .where(
                leadership.c.id == 1,
                leadership.c.epoch == term.epoch,
                leadership.c.holder == term.holder,
            )
            .values(holder=None, lease_expires_at=db_now())
        ).rowcount
        == 1
    )


def depose(connection: Connection) -> int | None:
    """End the current term from outside, as an operator does. Answers the epoch that ended."""
    return connection.execute(
        update(leadership)
        .where(leadership.c.id == 1, leadership.c.holder.is_not(None))
        .values(holder=None, lease_expires_at=db_now())
        .returning(leadership.c.epoch)
    ).scalar_one_or_none()
