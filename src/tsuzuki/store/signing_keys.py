"""Secrets that all processes on a database sign with: made by the first that asks, the same for all."""

from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Text, bindparam, select
from sqlalchemy.engine import Dialect

from tsuzuki.store.schema.access_tables import signing_keys
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for

_BY_NAME = select(signing_keys.c.secret).where(
    signing_keys.c.name == bindparam("wanted", type_=Text())
)


def get(connection: Connection, name: str) -> str | None:
    found: str | None = execute(connection, _BY_NAME, {"wanted": name}).scalar_one_or_none()
    return found


def add(connection: Connection, *, name: str, secret: str) -> None:
    """Store a secret, unless another process stored one first."""
    execute(connection, _insert(connection.dialect), {"name": name, "secret": secret})


@lru_cache
def _insert(dialect: Dialect) -> Any:
    values = parameters_for(signing_keys, "name", "secret")
    statement = insert_into(dialect, signing_keys).values(**values, created_at=db_now())
    return statement.on_conflict_do_nothing(index_elements=[signing_keys.c.name])
