"""The operations on `collect_cursor`, and the tables they stand in, on both databases."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from collectors.books.books_fixture import BooksFixture
from support.databases import opened
from tsuzuki.collectors.books.queries.cursors import (
    claim_search,
    get_collect_cursor,
    is_held_by,
    list_collect_cursors,
    release_search,
    reset_collect_cursors_by_job,
    upsert_collect_cursor,
)
from tsuzuki.collectors.books.tables import COMPONENT
from tsuzuki.model.cursor import Cursor
from tsuzuki.model.states import RunState
from tsuzuki.store.inspection import inspect_database
from tsuzuki.store.schema.migrate import ENGINE, upgrade
from tsuzuki.store.schema.migration_steps import drift
from tsuzuki.store.sql.database import Database

LONG_AGO = "2001-02-03 04:05:06"


def upsert(database: Database, job: str, key: str, start_index: int, exhausted: bool) -> None:
    with database.write() as connection:
        upsert_collect_cursor(connection, job, key, start_index, exhausted)


def get(database: Database, job: str = "novelties", key: str = "ab") -> Cursor | None:
    with database.read() as connection:
        return get_collect_cursor(connection, job, key)


def raw(database: Database, column: str) -> object:
    with database.read() as connection:
        return connection.execute(text(f"SELECT {column} FROM collect_cursor")).scalar_one()


def test_the_collect_cursor_table_is_created(books_database: Database) -> None:
    with books_database.read() as connection:
        assert drift(connection, COMPONENT) == []
    findings = inspect_database(books_database, [ENGINE, COMPONENT])
    assert [finding for finding in findings if not finding.is_ok] == []


def test_every_column_has_the_default_of_the_design(books_database: Database) -> None:
    with books_database.write() as connection:
        connection.execute(
            text("INSERT INTO collect_cursor (job_name, query_set_hash) VALUES ('j', 'h')")
        )
    cursor = get(books_database, "j", "h")
    assert cursor is not None
    assert (cursor.start_index, cursor.is_exhausted) == (0, False)
    written = str(raw(books_database, "last_updated_at"))
    assert datetime.strptime(written, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) == cursor.updated_at


def test_a_cursor_table_that_was_there_before_is_taken_over(empty_database_url: str) -> None:
    with opened(empty_database_url) as database:
        with database.write() as connection:
            connection.execute(
                text(
                    "CREATE TABLE collect_cursor (job_name TEXT NOT NULL, query_set_hash TEXT NOT"
                    " NULL, start_index INTEGER NOT NULL DEFAULT 0, is_exhausted INTEGER NOT NULL"
                    " DEFAULT 0, last_updated_at TEXT NOT NULL, PRIMARY KEY (job_name, query_set_hash))"
                )
            )
            connection.execute(
                text(f"INSERT INTO collect_cursor VALUES ('j', 'h', 80, 1, '{LONG_AGO}')")
            )
        upgrade(database, [ENGINE, COMPONENT])
        cursor = get(database, "j", "h")
        assert cursor is not None
        assert (cursor.start_index, cursor.is_exhausted) == (80, True)


def test_get_collect_cursor_finds_what_is_there_and_nothing_else(books_database: Database) -> None:
    upsert(books_database, "novelties", "ab", 40, False)
    found = get(books_database)
    assert found is not None
    assert (found.job_name, found.key, found.start_index) == ("novelties", "ab", 40)
    assert get(books_database, key="cd") is None
    assert get(books_database, job="other") is None


@pytest.mark.parametrize("exhausted", [True, False])
def test_upsert_collect_cursor_creates_and_updates_and_converts_booleans(
    books_database: Database, exhausted: bool
) -> None:
    upsert(books_database, "novelties", "ab", 0, not exhausted)
    upsert(books_database, "novelties", "ab", 120, exhausted)
    found = get(books_database)
    assert found is not None
    assert (found.start_index, found.is_exhausted) == (120, exhausted)
    assert raw(books_database, "is_exhausted") == (1 if exhausted else 0)


def test_upsert_collect_cursor_moves_last_updated_at_on_insert_and_on_update(
    books_database: Database,
) -> None:
    upsert(books_database, "novelties", "ab", 0, False)
    assert str(raw(books_database, "last_updated_at")) > LONG_AGO
    with books_database.write() as connection:
        connection.execute(text(f"UPDATE collect_cursor SET last_updated_at = '{LONG_AGO}'"))
    upsert(books_database, "novelties", "ab", 0, False)
    assert str(raw(books_database, "last_updated_at")) > LONG_AGO


def test_reset_collect_cursors_by_job_deletes_every_hash_of_the_job_and_counts(
    books_database: Database,
) -> None:
    upsert(books_database, "novelties", "ab", 40, False)
    upsert(books_database, "novelties", "cd", 80, True)
    upsert(books_database, "other", "ab", 1, False)
    with books_database.write() as connection:
        assert reset_collect_cursors_by_job(connection, "novelties") == 2
        assert reset_collect_cursors_by_job(connection, "novelties") == 0
        left = list_collect_cursors(connection)
    assert [(cursor.job_name, cursor.key) for cursor in left] == [("other", "ab")]
    assert get(books_database) is None


def test_list_collect_cursors_lists_all_or_those_of_a_job(books_database: Database) -> None:
    for job, key in (("b", "1"), ("a", "2"), ("b", "3")):
        upsert(books_database, job, key, 0, False)
    with books_database.read() as connection:
        assert len(list_collect_cursors(connection)) == 3
        assert {cursor.key for cursor in list_collect_cursors(connection, "b")} == {"1", "3"}


def test_a_search_is_held_by_one_running_run_and_by_none_that_ended(
    books_fixture: BooksFixture,
) -> None:
    first, second = books_fixture.start(), books_fixture.start()
    where = {"job_name": "novelties", "query_set_hash": "ab"}

    def holder(run_id: int) -> int:
        with books_fixture.database.write() as connection:
            return claim_search(connection, **where, list_options={}, run_id=run_id).held_by_run

    assert holder(first.context.id) == first.context.id
    assert holder(second.context.id) == first.context.id
    with books_fixture.database.write() as connection:
        assert is_held_by(connection, "novelties", "ab", run_id=first.context.id)
        assert not is_held_by(connection, "novelties", "ab", run_id=second.context.id)
    first.end(RunState.FAILED)
    assert holder(second.context.id) == second.context.id
    with books_fixture.database.write() as connection:
        release_search(connection, "novelties", "ab")
    assert holder(first.context.id) == first.context.id
