"""The text of an item's page, kept from the download until the item is processed."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, select
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.tables import item_pages
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for

_SELECT = select(item_pages).where(
    item_pages.c.item_id == bindparam("that_item", type_=BigInteger())
)


@dataclass(frozen=True, kw_only=True)
class StoredPage:
    item_id: int
    final_url: str
    text: str
    content_hash: str
    downloaded_at: datetime


def store(connection: Connection, page: StoredPage) -> None:
    """Keep a page, in place of an earlier one."""
    values = {column.name: getattr(page, column.name) for column in item_pages.c}
    execute(connection, _store(connection.dialect), values)


@lru_cache
def _store(dialect: Dialect) -> Any:
    names = [column.name for column in item_pages.c]
    statement = insert_into(dialect, item_pages).values(**parameters_for(item_pages, *names))
    return statement.on_conflict_do_update(
        index_elements=[item_pages.c.item_id],
        set_={name: statement.excluded[name] for name in names if name != "item_id"},
    )


def get(connection: Connection, item_id: int) -> StoredPage | None:
    row = execute(connection, _SELECT, {"that_item": item_id}).mapping_or_none()
    return None if row is None else StoredPage(**row)
