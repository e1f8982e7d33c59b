"""Where each job goes on: statements over `collect_cursor`, and over what stands beside it.

`last_updated_at` is moved by SQL, on insert and on update, in the same text form on both databases. A
search is held by one run at a time; a run that is no longer RUNNING holds nothing, whatever it left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from tsuzuki.collectors.books.tables import books_searches, collect_cursor
from tsuzuki.model.cursor import Cursor
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.plain_sql import plain

_NOW = {
    "sqlite": "datetime('now')",
    "postgresql": "to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
}
_UPSERT = {
    dialect: plain(
        "INSERT INTO collect_cursor"
        " (job_name, query_set_hash, start_index, is_exhausted, last_updated_at)"
        f" VALUES (:job_name, :query_set_hash, :start_index, :is_exhausted, {now})"
        " ON CONFLICT (job_name, query_set_hash) DO UPDATE SET"
        " start_index = excluded.start_index,"
        " is_exhausted = excluded.is_exhausted,"
        f" last_updated_at = {now}"
    )[dialect]
    for dialect, now in _NOW.items()
}

_SELECT_HOLDER = (
    "SELECT held_by_run FROM books_searches"
    " WHERE job_name = :job_name AND query_set_hash = :query_set_hash"
)
_HOLDER = {
    "sqlite": _SELECT_HOLDER,
    "postgresql": plain(f"{_SELECT_HOLDER} FOR UPDATE")["postgresql"],
}


def get_collect_cursor(connection: Connection, job_name: str, query_set_hash: str) -> Cursor | None:
    statement = select(collect_cursor).where(
        collect_cursor.c.job_name == job_name, collect_cursor.c.query_set_hash == query_set_hash
    )
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else _cursor(row)


def upsert_collect_cursor(
    connection: Connection,
    job_name: str,
    query_set_hash: str,
    start_index: int,
    is_exhausted: bool,
) -> None:
    connection.exec_driver_sql(
        _UPSERT[connection.dialect.name],
        {
            "job_name": job_name,
            "query_set_hash": query_set_hash,
            "start_index": start_index,
            "is_exhausted": 1 if is_exhausted else 0,
        },
    )


def reset_collect_cursors_by_job(connection: Connection, job_name: str) -> int:
    """Forget every search of a job, and answer how many cursors there were. A run that is at one of
    them loses it: what it fetches next is not stored."""
    connection.execute(delete(books_searches).where(books_searches.c.job_name == job_name))
    gone = connection.execute(delete(collect_cursor).where(collect_cursor.c.job_name == job_name))
    return gone.rowcount


def list_collect_cursors(connection: Connection, job_name: str | None = None) -> list[Cursor]:
    statement = select(collect_cursor).order_by(
        collect_cursor.c.job_name, collect_cursor.c.last_updated_at, collect_cursor.c.query_set_hash
    )
    if job_name is not None:
        statement = statement.where(collect_cursor.c.job_name == job_name)
    return [_cursor(row) for row in connection.execute(statement).mappings()]


def _cursor(row: RowMapping) -> Cursor:
    return Cursor(
        job_name=row["job_name"],
        key=row["query_set_hash"],
        start_index=row["start_index"],
        is_exhausted=row["is_exhausted"] == 1,
        updated_at=datetime.fromisoformat(row["last_updated_at"]).replace(tzinfo=UTC),
    )


@dataclass(frozen=True, kw_only=True)
class Hold:
    """What came of trying to hold a search."""

    held_by_run: int
    """The run that holds it now: the one that asked, or another one that is at it."""

    list_options: Mapping[str, Any]
    """The options that shaped the list the cursor counts in."""


def hold_search(
    connection: Connection,
    *,
    job_name: str,
    query_set_hash: str,
    list_options: Mapping[str, Any],
    run_id: int,
) -> Hold:
    """Take a search for a run, unless another run that is RUNNING has it. `list_options` are
    remembered for a search that is new."""
    flavour = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(
        flavour.insert(books_searches)
        .values(job_name=job_name, query_set_hash=query_set_hash, list_options=list_options)
        .on_conflict_do_nothing()
    )
    this = _search(job_name, query_set_hash)
    row = connection.execute(select(books_searches).where(*this).with_for_update()).one()
    holder = row.held_by_run
    if holder is not None and holder != run_id and _is_running(connection, holder):
        return Hold(held_by_run=holder, list_options=row.list_options)
    connection.execute(update(books_searches).where(*this).values(held_by_run=run_id))
    return Hold(held_by_run=run_id, list_options=row.list_options)


def reshape_search(
    connection: Connection, job_name: str, query_set_hash: str, list_options: Mapping[str, Any]
) -> None:
    """Remember that the list is another one now."""
    connection.execute(
        update(books_searches)
        .where(*_search(job_name, query_set_hash))
        .values(list_options=list_options)
    )


def still_holds(connection: Connection, job_name: str, query_set_hash: str, *, run_id: int) -> bool:
    """Whether the search is still this run's, and stays so until this transaction ends."""
    where = {"job_name": job_name, "query_set_hash": query_set_hash}
    held = connection.exec_driver_sql(_HOLDER[connection.dialect.name], where)
    return bool(held.scalar_one_or_none() == run_id)


def let_go(connection: Connection, job_name: str, query_set_hash: str) -> None:
    """Leave the search to whoever comes next."""
    connection.execute(
        update(books_searches).where(*_search(job_name, query_set_hash)).values(held_by_run=None)
    )


def _search(job_name: str, query_set_hash: str) -> Sequence[Any]:
    return (
        books_searches.c.job_name == job_name,
        books_searches.c.query_set_hash == query_set_hash,
    )


def _is_running(connection: Connection, run_id: int) -> bool:
    run = runs.get(connection, run_id)
    return run is not None and run.state is RunState.RUNNING
