"""Users. Changes are made one at a time (`lock`), because the guard of the last admin looks at all rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, delete, exists, or_, select, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.model.access import Role
from tsuzuki.store.schema.access_tables import users
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.types import KeyText

CHANGES_LOCK_KEY = "tsuzuki users"
"""Two admins that demote each other at the same time would each still see the other one (write skew)."""


@dataclass(frozen=True, kw_only=True)
class User:
    """A stored user. Its password hash is for this process alone: neither shown nor in `as_dict`."""

    id: int
    name: str
    role: Role
    password_hash: str = field(repr=False)
    password_changed_at: datetime
    created_at: datetime
    created_by: str
    disabled_at: datetime | None
    last_sign_in_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "password_hash"}


def lock(connection: Connection) -> None:
    """Let other changes of users wait until this transaction ends."""
    lock_until_commit(connection, CHANGES_LOCK_KEY)


_ME = users.c.id == bindparam("me", type_=BigInteger())
_BY_ID = select(users).where(_ME)
_BY_NAME = select(users).where(users.c.name == bindparam("wanted", type_=KeyText()))
_ALL = select(users).order_by(users.c.name)
_ANY = select(exists().where(users.c.id.is_not(None)))


def any_user(connection: AnyConnection) -> bool:
    return bool(execute(connection, _ANY).scalar_one())


def get(connection: Connection, user_id: int) -> User | None:
    return _user_or_none(execute(connection, _BY_ID, {"me": user_id}).mapping_or_none())


_LOCK_ENABLED = (
    select(users.c.id).where(_ME, users.c.disabled_at.is_(None)).with_for_update(read=True)
)


def lock_enabled(connection: Connection, user_id: int) -> bool:
    """Whether there is such a user, not disabled; then it stays so until the transaction ends."""
    return execute(connection, _LOCK_ENABLED, {"me": user_id}).scalar_one_or_none() is not None


def named(connection: Connection, name: str) -> User | None:
    return _user_or_none(execute(connection, _BY_NAME, {"wanted": name}).mapping_or_none())


def find(connection: Connection) -> list[User]:
    return [_user(row) for row in execute(connection, _ALL).mappings()]


@lru_cache
def _insert(dialect: Dialect) -> ReturningInsert[Any]:
    given = parameters_for(users, "name", "role", "password_hash", "created_by")
    statement: ReturningInsert[Any] = (
        insert_into(dialect, users)
        .values(**given, created_at=db_now(), password_changed_at=db_now())
        .on_conflict_do_nothing(index_elements=[users.c.name])
        .returning(*users.c)
    )
    return statement


def add(
    connection: Connection, *, name: str, role: Role, password_hash: str, actor: str
) -> User | None:
    """Add a user; None if the name is taken."""
    values = {"name": name, "role": role, "password_hash": password_hash, "created_by": actor}
    return _user_or_none(execute(connection, _insert(connection.dialect), values).mapping_or_none())


_OTHER = users.alias("other")
_ANOTHER_ADMIN = exists().where(
    _OTHER.c.id != users.c.id, _OTHER.c.role == Role.ADMIN, _OTHER.c.disabled_at.is_(None)
)
_IS_NOT_LAST_ADMIN = or_(
    users.c.role != Role.ADMIN, users.c.disabled_at.is_not(None), _ANOTHER_ADMIN
)
_SET_ROLE = {
    role: update(users)
    .where(_ME, *([] if role is Role.ADMIN else [_IS_NOT_LAST_ADMIN]))
    .values(role=role)
    .returning(*users.c)
    for role in Role
}
_DISABLE = (
    update(users)
    .where(_ME, users.c.disabled_at.is_(None), _IS_NOT_LAST_ADMIN)
    .values(disabled_at=db_now())
    .returning(*users.c)
)
_ENABLE = (
    update(users)
    .where(_ME, users.c.disabled_at.is_not(None))
    .values(disabled_at=None)
    .returning(*users.c)
)
_REMOVE = delete(users).where(_ME, _IS_NOT_LAST_ADMIN).returning(*users.c)


def set_role(connection: Connection, user_id: int, role: Role) -> User | None:
    """None if it is the last enabled admin, or gone."""
    return _changed(connection, _SET_ROLE[role], user_id)


def disable(connection: Connection, user_id: int) -> User | None:
    """None if it is the last enabled admin, disabled already, or gone."""
    return _changed(connection, _DISABLE, user_id)


def enable(connection: Connection, user_id: int) -> User | None:
    """None if it is not disabled, or gone."""
    return _changed(connection, _ENABLE, user_id)


def remove(connection: Connection, user_id: int) -> User | None:
    """Delete a user with its sessions and tokens. None if it is the last enabled admin, or gone."""
    return _changed(connection, _REMOVE, user_id)


_HAS_PASSWORD = users.c.password_hash == bindparam("verified", type_=users.c.password_hash.type)
_SET_PASSWORD = (
    update(users)
    .where(_ME, _HAS_PASSWORD)
    .values(**parameters_for(users, "password_hash"), password_changed_at=db_now())
)
_SIGN_IN = (
    update(users)
    .where(_ME, _HAS_PASSWORD, users.c.disabled_at.is_(None))
    .values(**parameters_for(users, "password_hash"), last_sign_in_at=db_now())
)


def set_password(connection: Connection, user: User, password_hash: str) -> bool:
    """Replace the password that `user` was read with. False if it was changed since."""
    values = {"me": user.id, "verified": user.password_hash, "password_hash": password_hash}
    return execute(connection, _SET_PASSWORD, values).rowcount == 1


def note_sign_in(connection: Connection, user: User, password_hash: str) -> bool:
    """Note a sign-in with the password that `user` was read with, which is stored anew as `password_hash`. False
    if the user was disabled or the password changed since. The row stays locked until the session is stored, so
    that neither can happen in between."""
    values = {"me": user.id, "verified": user.password_hash, "password_hash": password_hash}
    return execute(connection, _SIGN_IN, values).rowcount == 1


def _changed(connection: Connection, statement: Any, user_id: int) -> User | None:
    return _user_or_none(execute(connection, statement, {"me": user_id}).mapping_or_none())


def _user_or_none(row: Mapping[str, Any] | None) -> User | None:
    return None if row is None else _user(row)


def _user(row: Mapping[str, Any]) -> User:
    return User(**{**row, "role": Role(row["role"])})
