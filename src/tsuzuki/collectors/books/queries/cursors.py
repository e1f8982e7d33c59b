"""Cursors, where each job continues: statements over `collect_cursor` and the related `books_searches`.

`last_updated_at` is set by SQL, on insert and on update, in the same text form on both databases. One run at a time
holds a search (`claim`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.books.claim import Claims
from tsuzuki.collectors.books.tables import books_searches, collect_cursor
from tsuzuki.model.cursor import Cursor
from tsuzuki.store.sql.dialect import insert_into, is_sqlite
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import JsonText

_KEY = ("job_name", "query_set_hash")
_JOB = bindparam("job", type_=Text())
_HASH = bindparam("hash", type_=Text())
_OPTIONS = bindparam("options", type_=JsonText())
_CLAIMS = Claims(books_searches)
_SELECT_CURSOR = select(collect_cursor).where(
    collect_cursor.c.job_name == _JOB, collect_cursor.c.query_set_hash == _HASH
)
_ALL_CURSORS = select(collect_cursor).order_by(
    collect_cursor.c.job_name, collect_cursor.c.last_updated_at, collect_cursor.c.query_set_hash
)
_CURSORS_OF_JOB = _ALL_CURSORS.where(collect_cursor.c.job_name == _JOB)
_IS_SEARCH = (books_searches.c.job_name == _JOB, books_searches.c.query_set_hash == _HASH)
_SELECT_OPTIONS = select(books_searches.c.list_options).where(*_IS_SEARCH)
_SET_OPTIONS = update(books_searches).where(*_IS_SEARCH).values(list_options=_OPTIONS)
_DELETE_SEARCHES = delete(books_searches).where(books_searches.c.job_name == _JOB)
_DELETE_CURSORS = delete(collect_cursor).where(collect_cursor.c.job_name == _JOB)


def get_collect_cursor(connection: Connection, job_name: str, query_set_hash: str) -> Cursor | None:
    where = {"job": job_name, "hash": query_set_hash}
    row = execute(connection, _SELECT_CURSOR, where).one_or_none()
    return None if row is None else _cursor(row)


def upsert_collect_cursor(
    connection: Connection,
    job_name: str,
    query_set_hash: str,
    start_index: int,
    is_exhausted: bool,
) -> None:
    values = {
        "job": job_name,
        "hash": query_set_hash,
        "index": start_index,
        "exhausted": 1 if is_exhausted else 0,
    }
    execute(connection, _upsert(connection.dialect), values)


@lru_cache
def _upsert(dialect: Dialect) -> Any:
    moment = (
        func.datetime(literal("now"))
        if is_sqlite(dialect)
        else func.to_char(
            func.timezone(literal("UTC"), func.statement_timestamp()),
            literal("YYYY-MM-DD HH24:MI:SS"),
        )
    )
    statement = insert_into(dialect, collect_cursor).values(
        job_name=_JOB,
        query_set_hash=_HASH,
        start_index=bindparam("index", type_=Integer()),
        is_exhausted=bindparam("exhausted", type_=Integer()),
        last_updated_at=moment,
    )
    moved = ("start_index", "is_exhausted", "last_updated_at")
    return statement.on_conflict_do_update(
        index_elements=_KEY, set_={name: statement.excluded[name] for name in moved}
    )


def reset_collect_cursors_by_job(connection: Connection, job_name: str) -> int:
    """Forget every search of a job, and return how many cursors there were. A run that is collecting
    one of them loses it: what it fetches next is not stored."""
    execute(connection, _DELETE_SEARCHES, {"job": job_name})
    return execute(connection, _DELETE_CURSORS, {"job": job_name}).rowcount


def list_collect_cursors(connection: Connection, job_name: str | None = None) -> list[Cursor]:
    if job_name is None:
        rows = execute(connection, _ALL_CURSORS)
    else:
        rows = execute(connection, _CURSORS_OF_JOB, {"job": job_name})
    return [_cursor(row) for row in rows.all()]


def _cursor(row: Any) -> Cursor:
    job_name, query_set_hash, start_index, is_exhausted, last_updated_at = row
    return Cursor(
        job_name=job_name,
        key=query_set_hash,
        start_index=start_index,
        is_exhausted=is_exhausted == 1,
        updated_at=datetime.fromisoformat(last_updated_at).replace(tzinfo=UTC),
    )


@dataclass(frozen=True, kw_only=True)
class ClaimedSearch:
    """What came of claiming a search."""

    held_by_run: int
    """The run that holds it now: the one that asked, or another one that is RUNNING."""

    list_options: Mapping[str, Any]
    """The options that shaped the list the cursor counts in."""


def claim_search(
    connection: Connection,
    *,
    job_name: str,
    query_set_hash: str,
    list_options: Mapping[str, Any],
    run_id: int,
) -> ClaimedSearch:
    """Take a search for a run, unless another run that is RUNNING has it. `list_options` are
    remembered for a search that is new."""
    where = {"job": job_name, "hash": query_set_hash}
    execute(connection, _add_search(connection.dialect), {**where, "options": list_options})
    holder = _CLAIMS.take(connection, _key(job_name, query_set_hash), run_id=run_id)
    known = execute(connection, _SELECT_OPTIONS, where).scalar_one()
    return ClaimedSearch(held_by_run=holder, list_options=known)


@lru_cache
def _add_search(dialect: Dialect) -> Any:
    return (
        insert_into(dialect, books_searches)
        .values(job_name=_JOB, query_set_hash=_HASH, list_options=_OPTIONS)
        .on_conflict_do_nothing()
    )


def get_list_options(
    connection: Connection, job_name: str, query_set_hash: str
) -> Mapping[str, Any] | None:
    """The options that shaped the list that the cursor counts in; None for an unknown search."""
    where = {"job": job_name, "hash": query_set_hash}
    known: Mapping[str, Any] | None = execute(
        connection, _SELECT_OPTIONS, where
    ).scalar_one_or_none()
    return known


def set_list_options(
    connection: Connection, job_name: str, query_set_hash: str, list_options: Mapping[str, Any]
) -> None:
    """Remember that the list is another one now."""
    values = {"job": job_name, "hash": query_set_hash, "options": list_options}
    execute(connection, _SET_OPTIONS, values)


def is_held_by(connection: Connection, job_name: str, query_set_hash: str, *, run_id: int) -> bool:
    """Whether the search is still this run's, and stays so until this transaction ends."""
    return _CLAIMS.is_held_by(connection, _key(job_name, query_set_hash), run_id=run_id)


def release_search(connection: Connection, job_name: str, query_set_hash: str) -> None:
    """Leave the search to the next run."""
    _CLAIMS.release(connection, _key(job_name, query_set_hash))


def _key(job_name: str, query_set_hash: str) -> dict[str, str]:
    return {"job_name": job_name, "query_set_hash": query_set_hash}
