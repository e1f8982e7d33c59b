"""Leadership: the lease, the epoch, and the fence. One row; taking the lease raises the epoch, and every
write of a leader names its epoch and its holder.

`TERM_IS_CURRENT` is the fence (the epoch is a fencing token): in the WHERE of a statement it lets the statement
take effect only while epoch and holder are the current ones. The holder counts too: a failover to a standby that
had not received a term yet gives its epoch a second time. On PostgreSQL the fence also locks the row FOR KEY SHARE
until the transaction ends, so a term ends only after its last write is committed or rolled back; SQLite has one
writer at a time anyway.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Float,
    Integer,
    Text,
    and_,
    bindparam,
    exists,
    or_,
    select,
    update,
)

from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS
from tsuzuki.store.schema.operation_tables import leader_terms
from tsuzuki.store.schema.tables import leadership
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import AnyConnection, execute
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list


@dataclass(frozen=True, kw_only=True)
class Term:
    """One holder's time as leader. Carried by every leader write."""

    holder: str
    epoch: int

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of `TERM_IS_CURRENT`."""
        return {"leader": self.holder, "epoch": self.epoch}


@dataclass(frozen=True, kw_only=True)
class Leadership:
    """The row as it is. `is_valid` is by the database's clock, at the time of reading; false if the lease would
    last longer than it was taken for (clock skew), because its real end is unknown then."""

    epoch: int
    holder: str | None
    lease_expires_at: datetime
    taken_at: datetime | None
    is_valid: bool


# Not a CTE: Python's sqlite3 does not count the rows of a statement that starts with WITH.
_CURRENT_TERM = (
    select(leadership.c.epoch)
    .where(
        leadership.c.id == 1,
        leadership.c.epoch == bindparam("epoch", type_=BigInteger()),
        leadership.c.holder == bindparam("leader", type_=Text()),
    )
    .with_for_update(read=True, key_share=True)
)
TERM_IS_CURRENT = exists(_CURRENT_TERM)
"""True while the term of the parameters `leader` and `epoch` is the current one, and for the rest of the
transaction."""

MAY_ASSIGN = exists(
    _CURRENT_TERM.where(leadership.c.bulk_cancels == bindparam("bulk_cancels", type_=BigInteger()))
)
"""The same for an assignment: true only if also no bulk cancel was confirmed since the runs were chosen, when
`bulk_cancels` of them were."""

_COUNT_BULK_CANCEL = (
    update(leadership)
    .where(leadership.c.id == 1)
    .values(bulk_cancels=leadership.c.bulk_cancels + 1)
)


def count_bulk_cancel(connection: Connection) -> None:
    """Let no run be assigned that was chosen before this transaction, which confirms a bulk cancel. Waits for
    assignments that are under way (PostgreSQL); they are in when this returns."""
    execute(connection, _COUNT_BULK_CANCEL)


_BULK_CANCELS = select(leadership.c.bulk_cancels).where(leadership.c.id == 1)


def bulk_cancels(connection: Connection) -> int:
    """How many bulk cancels were confirmed so far."""
    return int(execute(connection, _BULK_CANCELS).scalar_one())


_CURRENT = select(
    leadership.c.epoch,
    leadership.c.holder,
    leadership.c.lease_expires_at,
    leadership.c.taken_at,
    and_(
        leadership.c.lease_expires_at > db_now(),
        leadership.c.lease_expires_at
        <= db_now(leadership.c.lease_seconds + CLOCK_TOLERANCE_SECONDS),
    ).label("is_valid"),
).where(leadership.c.id == 1)


def current(connection: Connection) -> Leadership:
    epoch, holder, lease_expires_at, taken_at, is_valid = execute(connection, _CURRENT).one()
    return Leadership(
        epoch=epoch,
        holder=holder,
        lease_expires_at=lease_expires_at,
        taken_at=taken_at,
        is_valid=bool(is_valid) and holder is not None,
    )


_REMAINING = select(
    leadership.c.holder, leadership.c.lease_expires_at, leadership.c.lease_seconds, db_now()
).where(leadership.c.id == 1)


class LeaseRemaining(NamedTuple):
    """How long the current lease still lasts, if it is not renewed; 0 if no process leads. `is_possible` is
    false if that is longer than it was taken for: the clock was set back since (clock skew)."""

    seconds: float
    is_possible: bool
    expires_at: datetime
    read_at: datetime
    """By the database's clock."""

    age_seconds: float
    """Since it was renewed."""


def lease_remaining(connection: Connection) -> LeaseRemaining:
    holder, expires_at, lease_seconds, now = execute(connection, _REMAINING).one()
    until_end: float = (expires_at - now).total_seconds()
    seconds = max(until_end, 0.0) if holder is not None else 0.0
    is_possible = seconds <= lease_seconds + CLOCK_TOLERANCE_SECONDS
    return LeaseRemaining(
        seconds, is_possible, expires_at, now, age_seconds=lease_seconds - until_end
    )


_SHORTEN = (
    update(leadership)
    .where(
        leadership.c.id == 1,
        leadership.c.lease_expires_at == bindparam("seen", type_=UtcTime()),
    )
    .values(lease_expires_at=db_now(leadership.c.lease_seconds))
)


def shorten_overlong_lease(connection: AnyConnection, remaining: LeaseRemaining) -> None:
    """After clock skew: let the lease end no later than the time it was taken for, counted from now. Its holder
    believes in it no longer than that, by a monotonic clock; a live holder renews it as usual. A lease that was
    renewed since `remaining` was read is not changed."""
    execute(connection, _SHORTEN, {"seen": remaining.expires_at})


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


def take(connection: AnyConnection, *, holder: str, lease_seconds: float) -> Term | None:
    """Become leader if the lease is free. None if another process leads, or won the race for it."""
    parameters = {"me": holder, "lease_seconds": lease_seconds}
    epoch = execute(connection, _TAKE, parameters).scalar_one_or_none()
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


def renew(connection: AnyConnection, *, term: Term, lease_seconds: float) -> bool:
    """Renew the lease. False if it has expired or another process took it; the term is over for good."""
    parameters = {"our_epoch": term.epoch, "me": term.holder, "lease_seconds": lease_seconds}
    return execute(connection, _RENEW, parameters).rowcount == 1


def release(connection: Connection, *, term: Term) -> bool:
    """Step down, so that another can lead at once. Waits for writes of the term that are under way (PostgreSQL);
    later ones change nothing. The epoch stays as it is until another process takes the lease."""
    parameters = {"our_epoch": term.epoch, "me": term.holder}
    return execute(connection, _RELEASE, parameters).rowcount == 1


_RELEASE_DEAD = (
    update(leadership)
    .where(leadership.c.id == 1, in_list(leadership.c.holder, "names"))
    .values(holder=None, lease_expires_at=db_now())
)


def release_dead(connection: Connection, process_names: Collection[str]) -> bool:
    """End the term of a process that has ended without stepping down, so that another can lead at once. If the caller
    is wrong, its writes are refused like those of any leader whose term is over."""
    return execute(connection, _RELEASE_DEAD, {"names": sorted(process_names)}).rowcount == 1


_DEPOSE = (
    update(leadership)
    .where(leadership.c.id == 1, leadership.c.holder.is_not(None))
    .values(holder=None, lease_expires_at=db_now())
    .returning(leadership.c.epoch)
)


def depose(connection: Connection) -> int | None:
    """End the current term by an operator's order. Answers the epoch that ended. As with `release`, the row keeps
    it until another process takes the lease, and no leader can write meanwhile."""
    epoch: int | None = execute(connection, _DEPOSE).scalar_one_or_none()
    return epoch


@dataclass(frozen=True, kw_only=True)
class PastTerm:
    """Who led, from when to when; `ended_at` is None if the term goes on, or nothing was noted since its lease ran
    out."""

    epoch: int
    holder: str
    taken_at: datetime
    ended_at: datetime | None


_PAST_TERMS = (
    select(leader_terms)
    .order_by(leader_terms.c.epoch.desc())
    .limit(bindparam("limit", type_=Integer()))
)


def past_terms(connection: Connection, *, limit: int) -> list[PastTerm]:
    """The newest first."""
    return [
        PastTerm(**row) for row in execute(connection, _PAST_TERMS, {"limit": limit}).mappings()
    ]
