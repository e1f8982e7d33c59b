"""Sessions of browsers. One that ends is deleted; one that is expired is refused, and deleted at the next sign-in."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Float,
    Select,
    and_,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from tsuzuki.model.access import Role
from tsuzuki.store.schema.access_tables import user_sessions, users
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.value_list import in_list

LAST_SEEN_INTERVAL_SECONDS = 60.0
"""The last request is written at most so often."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A stored session and its user."""

    id: int
    user_id: int
    user: str
    user_role: Role
    created_at: datetime
    last_seen_at: datetime
    """To the minute."""
    expires_at: datetime
    """The latest end; it ends earlier without requests."""
    address: str | None
    user_agent: str | None
    is_live: bool
    """Neither idle for too long nor over; and its user is not disabled."""
    is_seen_outdated: bool
    """Whether the last request is to be written again."""

    def as_dict(self) -> dict[str, Any]:
        """What its user sees of it."""
        not_shown = ("user_id", "user_role", "is_live", "is_seen_outdated")
        return {name: value for name, value in vars(self).items() if name not in not_shown}


_MINUS_IDLE = bindparam("minus_idle", type_=Float())
_IS_IN_TIME = and_(
    user_sessions.c.expires_at > db_now(), user_sessions.c.last_seen_at > db_now(_MINUS_IDLE)
)
_IS_LIVE = and_(_IS_IN_TIME, users.c.disabled_at.is_(None))
_IS_SEEN_OUTDATED = user_sessions.c.last_seen_at < db_now(-LAST_SEEN_INTERVAL_SECONDS)
_JOINED = user_sessions.join(users, users.c.id == user_sessions.c.user_id)
_SELECT = select(
    *(column for column in user_sessions.c if column.name != "secret_hash"),
    users.c.name.label("user"),
    users.c.role.label("user_role"),
    _IS_LIVE.label("is_live"),
    _IS_SEEN_OUTDATED.label("is_seen_outdated"),
).select_from(_JOINED)
_BY_HASH = _SELECT.where(
    user_sessions.c.secret_hash == bindparam("hash", type_=user_sessions.c.secret_hash.type)
)
_BY_ID = _SELECT.where(user_sessions.c.id == bindparam("me", type_=BigInteger()))
_ADD = (
    insert(user_sessions)
    .values(
        **parameters_for(user_sessions, "secret_hash", "user_id", "address", "user_agent"),
        created_at=db_now(),
        last_seen_at=db_now(),
        expires_at=db_now(bindparam("lifetime_seconds", type_=Float())),
    )
    .returning(user_sessions.c.id)
)


def add(
    connection: Connection,
    *,
    secret_hash: str,
    user_id: int,
    lifetime_seconds: float,
    address: str | None,
    user_agent: str | None,
) -> int:
    """Store a new session; answers its id."""
    values = {
        "secret_hash": secret_hash,
        "user_id": user_id,
        "lifetime_seconds": lifetime_seconds,
        "address": address,
        "user_agent": user_agent,
    }
    session_id: int = execute(connection, _ADD, values).scalar_one()
    return session_id


def with_hash(
    connection: AnyConnection, secret_hash: str, *, idle_seconds: float
) -> Session | None:
    parameters = {"hash": secret_hash, "minus_idle": -idle_seconds}
    row = execute(connection, _BY_HASH, parameters).mapping_or_none()
    return None if row is None else _session(row)


def get(connection: Connection, session_id: int, *, idle_seconds: float) -> Session | None:
    parameters = {"me": session_id, "minus_idle": -idle_seconds}
    row = execute(connection, _BY_ID, parameters).mapping_or_none()
    return None if row is None else _session(row)


def find(
    connection: Connection, *, idle_seconds: float, user_id: int | None = None
) -> list[Session]:
    """Live sessions, newest first; with `user_id` those of one user."""
    parameters: dict[str, Any] = {"minus_idle": -idle_seconds}
    if user_id is not None:
        parameters["user"] = user_id
    rows = execute(connection, _list(of_user=user_id is not None), parameters).mappings()
    return [_session(row) for row in rows]


_OF_USER = user_sessions.c.user_id == bindparam("user", type_=BigInteger())


@lru_cache
def _list(*, of_user: bool) -> Select[Any]:
    statement = _SELECT.where(_IS_LIVE).order_by(user_sessions.c.id.desc())
    return statement.where(_OF_USER) if of_user else statement


_THESE = in_list(user_sessions.c.id, "ids")
_END = delete(user_sessions).where(user_sessions.c.id == bindparam("me", type_=BigInteger()))
_END_ALL = (
    delete(user_sessions)
    .where(_OF_USER, user_sessions.c.id != bindparam("kept", type_=BigInteger()))
    .returning(user_sessions.c.id)
)
# Locked rows are left to the next one: waiting for them could be a deadlock.
_EXPIRED = select(user_sessions.c.id).where(~_IS_IN_TIME).with_for_update(skip_locked=True)
_DELETE_EXPIRED = delete(user_sessions).where(user_sessions.c.id.in_(_EXPIRED))
_NOTE_SEEN = (
    update(user_sessions)
    .where(user_sessions.c.id == bindparam("me", type_=BigInteger()), _IS_SEEN_OUTDATED)
    .values(last_seen_at=db_now())
)
_LIVE = select(user_sessions.c.id).select_from(_JOINED).where(_THESE, _IS_LIVE)
NO_SESSION = 0
"""An id that no session has."""


def end(connection: Connection, session_id: int) -> bool:
    """False if it has ended before."""
    return execute(connection, _END, {"me": session_id}).rowcount == 1


def end_all(connection: Connection, user_id: int, *, except_id: int | None = None) -> list[int]:
    """End the sessions of a user. Answers which ended."""
    parameters = {"user": user_id, "kept": NO_SESSION if except_id is None else except_id}
    return sorted(execute(connection, _END_ALL, parameters).scalars())


def delete_expired(connection: Connection, *, idle_seconds: float) -> None:
    execute(connection, _DELETE_EXPIRED, {"minus_idle": -idle_seconds})


def note_seen(connection: AnyConnection, session_id: int) -> None:
    """Store that a session had a request now, unless that was stored a moment ago."""
    execute(connection, _NOTE_SEEN, {"me": session_id})


def live(
    connection: Connection, session_ids: Collection[int], *, idle_seconds: float
) -> frozenset[int]:
    """Those that still authenticate."""
    parameters = {"ids": sorted(session_ids), "minus_idle": -idle_seconds}
    return frozenset(execute(connection, _LIVE, parameters).scalars())


def _session(row: Mapping[str, Any]) -> Session:
    flags = {name: bool(row[name]) for name in ("is_live", "is_seen_outdated")}
    return Session(**{**row, "user_role": Role(row["user_role"]), **flags})
