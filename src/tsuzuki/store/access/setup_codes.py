"""The setup code: one row at most. A new code replaces the one before."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Float, bindparam, exists, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.store.schema.access_tables import setup_codes, users
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for

_ONLY = 1


@lru_cache
def _put(dialect: Dialect) -> Any:
    given = parameters_for(setup_codes, "code_hash", "created_by")
    end = db_now(bindparam("lifetime_seconds", type_=Float()))
    statement = insert_into(dialect, setup_codes).values(
        **given, id=_ONLY, created_at=db_now(), expires_at=end, used_at=None
    )
    replaced = ("code_hash", "created_by", "created_at", "expires_at", "used_at")
    return statement.on_conflict_do_update(
        index_elements=[setup_codes.c.id],
        set_={name: statement.excluded[name] for name in replaced},
    ).returning(setup_codes.c.expires_at)


def put(connection: Connection, *, code_hash: str, lifetime_seconds: float, actor: str) -> datetime:
    """Store a code in place of any other one; answers when it expires."""
    values = {"code_hash": code_hash, "lifetime_seconds": lifetime_seconds, "created_by": actor}
    expires_at: datetime = execute(connection, _put(connection.dialect), values).scalar_one()
    return expires_at


_VALID = (
    setup_codes.c.used_at.is_(None),
    setup_codes.c.expires_at > db_now(),
)
_VALID_HASH = select(setup_codes.c.code_hash).where(*_VALID)
_USE = (
    update(setup_codes)
    .where(
        setup_codes.c.code_hash == bindparam("hash", type_=setup_codes.c.code_hash.type),
        *_VALID,
        ~exists().where(users.c.id.is_not(None)),
    )
    .values(used_at=db_now())
)


def valid_hash(connection: Connection) -> str | None:
    """The hash of the code that can be used now."""
    code_hash: str | None = execute(connection, _VALID_HASH).scalar_one_or_none()
    return code_hash


def use(connection: Connection, code_hash: str) -> bool:
    """Use a code up. False if it is not valid any more, or there is a user."""
    return execute(connection, _USE, {"hash": code_hash}).rowcount == 1
