"""Tokens of programs. A revoked one keeps its row and frees its name.

A token that was made with another one, its parent, expires and is revoked with it: making one locks the parent as
live, and revoking looks for the children of what it has just revoked.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Float,
    Select,
    bindparam,
    case,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.model.access import Role
from tsuzuki.store.schema.access_tables import api_tokens, users
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.types import KeyText
from tsuzuki.store.sql.value_list import in_list

LAST_USED_INTERVAL_SECONDS = 60.0
"""The last use is written at most so often."""


@dataclass(frozen=True, kw_only=True)
class Token:
    """A stored token, and what is to be known of the user that it belongs to. A scope may be unknown here: the right of
    a newer version, or of a collector that is not installed."""

    id: str
    name: str
    role: Role
    scopes: frozenset[str] | None
    secret_hash: str = field(repr=False)
    user_id: int | None
    user_name: str | None
    user_role: Role | None
    user_is_disabled: bool
    created_at: datetime
    created_by: str
    expires_at: datetime
    is_expired: bool
    last_used_at: datetime | None
    is_use_outdated: bool
    """Whether the last use is to be written again."""
    revoked_at: datetime | None
    revoked_by: str | None
    parent_id: str | None


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A token before it is stored."""

    id: str
    name: str
    role: Role
    scopes: frozenset[str] | None
    secret_hash: str = field(repr=False)
    user_id: int | None
    lifetime_seconds: float
    created_by: str
    parent_id: str | None


_parent = api_tokens.alias("parent")
_PARENT_END = (
    select(_parent.c.expires_at)
    .where(_parent.c.id == bindparam("parent_id", type_=KeyText()))
    .scalar_subquery()
)


@lru_cache
def _insert(dialect: Dialect) -> ReturningInsert[Any]:
    given = parameters_for(
        api_tokens,
        "id",
        "name",
        "role",
        "scopes",
        "secret_hash",
        "user_id",
        "created_by",
        "parent_id",
    )
    end, parent_end = db_now(bindparam("lifetime_seconds", type_=Float())), _PARENT_END
    statement: ReturningInsert[Any] = (
        insert_into(dialect, api_tokens)
        .values(
            **given,
            created_at=db_now(),
            expires_at=case((parent_end < end, parent_end), else_=end),
        )
        .on_conflict_do_nothing(
            index_elements=[api_tokens.c.name], index_where=api_tokens.c.revoked_at.is_(None)
        )
        .returning(api_tokens.c.id)
    )
    return statement


def add(connection: Connection, token: NewToken) -> Token | None:
    """Store a token, which expires no later than its parent; None if a token of that name is not revoked."""
    values = {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "scopes": None if token.scopes is None else sorted(token.scopes),
        "secret_hash": token.secret_hash,
        "user_id": token.user_id,
        "created_by": token.created_by,
        "lifetime_seconds": token.lifetime_seconds,
        "parent_id": token.parent_id,
    }
    stored = execute(connection, _insert(connection.dialect), values).scalar_one_or_none()
    return None if stored is None else get(connection, token.id)


_IS_USE_OUTDATED = or_(
    api_tokens.c.last_used_at.is_(None),
    api_tokens.c.last_used_at < db_now(-LAST_USED_INTERVAL_SECONDS),
)
_IS_EXPIRED = api_tokens.c.expires_at <= db_now()
_SELECT = select(
    *api_tokens.c,
    _IS_EXPIRED.label("is_expired"),
    _IS_USE_OUTDATED.label("is_use_outdated"),
    users.c.name.label("user_name"),
    users.c.role.label("user_role"),
    users.c.disabled_at.is_not(None).label("user_is_disabled"),
).select_from(api_tokens.outerjoin(users, users.c.id == api_tokens.c.user_id))
_BY_ID = _SELECT.where(api_tokens.c.id == bindparam("wanted", type_=KeyText()))
_BY_NAME = _SELECT.where(
    api_tokens.c.name == bindparam("wanted", type_=KeyText()), api_tokens.c.revoked_at.is_(None)
)


def get(connection: AnyConnection, token_id: str) -> Token | None:
    return _token_or_none(execute(connection, _BY_ID, {"wanted": token_id}).mapping_or_none())


def named(connection: Connection, name: str) -> Token | None:
    """The token of that name that is not revoked."""
    return _token_or_none(execute(connection, _BY_NAME, {"wanted": name}).mapping_or_none())


def find(
    connection: Connection, *, user_id: int | None = None, with_revoked: bool = False
) -> list[Token]:
    """The oldest first; with `user_id` those that belong to this user."""
    statement = _list(of_user=user_id is not None, with_revoked=with_revoked)
    parameters = {} if user_id is None else {"user": user_id}
    return [_token(row) for row in execute(connection, statement, parameters).mappings()]


@lru_cache
def _list(*, of_user: bool, with_revoked: bool) -> Select[Any]:
    statement = _SELECT.order_by(api_tokens.c.created_at, api_tokens.c.id)
    if of_user:
        statement = statement.where(api_tokens.c.user_id == bindparam("user", type_=BigInteger()))
    return statement if with_revoked else statement.where(api_tokens.c.revoked_at.is_(None))


_REVOKE = (
    update(api_tokens)
    .where(
        api_tokens.c.id == bindparam("wanted", type_=KeyText()), api_tokens.c.revoked_at.is_(None)
    )
    .values(**parameters_for(api_tokens, "revoked_by"), revoked_at=db_now())
)


_THESE = in_list(api_tokens.c.id, "ids")
_REVOKE_CHILDREN = (
    update(api_tokens)
    .where(in_list(api_tokens.c.parent_id, "ids"), api_tokens.c.revoked_at.is_(None))
    .values(**parameters_for(api_tokens, "revoked_by"), revoked_at=db_now())
    .returning(api_tokens.c.id)
)


def revoke(connection: Connection, token_id: str, *, actor: str) -> list[str] | None:
    """Revoke a token with all that were made with it. Answers their ids, its own first; None if it was revoked
    before."""
    if execute(connection, _REVOKE, {"wanted": token_id, "revoked_by": actor}).rowcount != 1:
        return None
    revoked, parents = [token_id], [token_id]
    while parents:
        # One level after the other, each in a statement of its own: it sees what a parent made until it was revoked.
        values = {"ids": parents, "revoked_by": actor}
        parents = sorted(execute(connection, _REVOKE_CHILDREN, values).scalars())
        revoked += parents
    return revoked


_CHILDREN = select(api_tokens.c.id).where(
    in_list(api_tokens.c.parent_id, "ids"), api_tokens.c.revoked_at.is_(None)
)


def made_with(connection: Connection, token_id: str) -> list[str]:
    """The ids of those that `revoke` would revoke with a token."""
    found: list[str] = []
    parents = [token_id]
    while parents:
        parents = sorted(execute(connection, _CHILDREN, {"ids": parents}).scalars())
        found += parents
    return found


_LOCK_LIVE = (
    select(api_tokens.c.id)
    .where(
        api_tokens.c.id == bindparam("wanted", type_=KeyText()),
        api_tokens.c.revoked_at.is_(None),
        # A second more: what it makes must end after it was made.
        api_tokens.c.expires_at > db_now(1.0),
    )
    .with_for_update(read=True)
)


def lock_live(connection: Connection, token_id: str) -> bool:
    """Whether a token is neither revoked nor expired; then it is not revoked before the transaction ends."""
    found = execute(connection, _LOCK_LIVE, {"wanted": token_id}).scalar_one_or_none()
    return found is not None


_NOTE_USE = (
    update(api_tokens)
    .where(api_tokens.c.id == bindparam("wanted", type_=KeyText()), _IS_USE_OUTDATED)
    .values(last_used_at=db_now())
)
_LIVE = (
    select(api_tokens.c.id)
    .select_from(api_tokens.outerjoin(users, users.c.id == api_tokens.c.user_id))
    .where(_THESE, api_tokens.c.revoked_at.is_(None), ~_IS_EXPIRED, users.c.disabled_at.is_(None))
)


def note_use(connection: AnyConnection, token_id: str) -> None:
    """Store that a token is used now, unless that was stored a moment ago."""
    execute(connection, _NOTE_USE, {"wanted": token_id})


def live(connection: Connection, token_ids: Collection[str]) -> frozenset[str]:
    """Those that are neither revoked nor expired, and whose user is not disabled."""
    return frozenset(execute(connection, _LIVE, {"ids": sorted(token_ids)}).scalars())


def _token_or_none(row: Mapping[str, Any] | None) -> Token | None:
    return None if row is None else _token(row)


def _token(row: Mapping[str, Any]) -> Token:
    scopes, user_role = row["scopes"], row["user_role"]
    return Token(
        **{
            **row,
            "role": Role(row["role"]),
            "scopes": None if scopes is None else frozenset(scopes),
            "user_role": None if user_role is None else Role(user_role),
            **{name: bool(row[name]) for name in _FLAGS},
        }
    )


_FLAGS = ("is_expired", "is_use_outdated", "user_is_disabled")
