"""Saved views: one address per owner and name; saving under a name again replaces it."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Integer, Text, bindparam, delete, func, select
from sqlalchemy.engine import Dialect

from tsuzuki.store.schema.access_tables import saved_views
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for


@dataclass(frozen=True, kw_only=True)
class SavedView:
    owner: str
    name: str
    address: str
    created_at: datetime


_OWNER = saved_views.c.owner == bindparam("of_owner", type_=Text())
_ALL = (
    select(saved_views)
    .order_by(saved_views.c.name, saved_views.c.owner)
    .limit(bindparam("limit", type_=Integer()))
)
_COUNT = select(func.count()).select_from(saved_views).where(_OWNER)
_DELETE = delete(saved_views).where(
    _OWNER, saved_views.c.name == bindparam("of_name", type_=Text())
)


def find(connection: Connection, *, limit: int) -> list[SavedView]:
    """Those of all owners, by name."""
    return [SavedView(**row) for row in execute(connection, _ALL, {"limit": limit}).mappings()]


def count_of(connection: Connection, owner: str) -> int:
    return int(execute(connection, _COUNT, {"of_owner": owner}).scalar_one())


def put(connection: Connection, *, owner: str, name: str, address: str) -> None:
    values = {"owner": owner, "name": name, "address": address}
    execute(connection, _upsert(connection.dialect), values)


@lru_cache
def _upsert(dialect: Dialect) -> Any:
    given = parameters_for(saved_views, "owner", "name", "address")
    statement = insert_into(dialect, saved_views).values(**given, created_at=db_now())
    key = [saved_views.c.owner, saved_views.c.name]
    return statement.on_conflict_do_update(
        index_elements=key, set_={"address": statement.excluded.address}
    )


def remove(connection: Connection, *, owner: str, name: str) -> bool:
    """False if there is none."""
    return execute(connection, _DELETE, {"of_owner": owner, "of_name": name}).rowcount == 1
