"""The rows of a page are stored in the right columns, on both databases."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, select

from tsuzuki.collectors.kit.upsert import PageUpsert
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.types import UtcTime

MOMENT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
LATER = datetime(2026, 3, 2, tzinfo=UTC)

items = Table(
    "upsert_items",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("title", Text),
    Column("published_at", UtcTime),
    Column("seen_by", Text),
    Column("first_seen_at", UtcTime),
)
COLUMNS = {"title": Text(), "id": Integer(), "published_at": UtcTime()}
CONSTANTS = {"seen_by": Text(), "first_seen_at": UtcTime()}


@pytest.fixture
def database(live_database: Database) -> Iterator[Database]:
    with live_database.write() as connection:
        items.create(connection)
    yield live_database
    with live_database.write() as connection:
        items.drop(connection)


def stored(database: Database) -> list[tuple[object, ...]]:
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(select(items).order_by(items.c.id))]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_value_reaches_its_column_whatever_the_order_of_the_constants(
    database: Database, count: int
) -> None:
    upsert = PageUpsert(items, columns=COLUMNS, constants=CONSTANTS, keep=["first_seen_at"])
    rows = [(f"title {n}", n, MOMENT) for n in range(count)]
    with database.write() as connection:
        upsert.send(connection, rows, {"first_seen_at": MOMENT, "seen_by": "a"})
    assert stored(database) == [(n, f"title {n}", MOMENT, "a", MOMENT) for n in range(count)]


def test_a_stored_row_gets_the_new_values_except_those_to_keep(database: Database) -> None:
    upsert = PageUpsert(items, columns=COLUMNS, constants=CONSTANTS, keep=["first_seen_at"])
    with database.write() as connection:
        upsert.send(connection, [("old", 1, MOMENT)], {"seen_by": "a", "first_seen_at": MOMENT})
        again = [("new", 1, LATER), ("two", 2, None)]
        upsert.send(connection, again, {"seen_by": "b", "first_seen_at": LATER})
    assert stored(database) == [(1, "new", LATER, "b", MOMENT), (2, "two", None, "b", LATER)]


def test_without_columns_to_keep_a_stored_row_stays_as_it_is(database: Database) -> None:
    upsert = PageUpsert(items, columns=COLUMNS, constants=CONSTANTS, keep=None)
    with database.write() as connection:
        for title in ("old", "new"):
            rows = [(title, 1, MOMENT)]
            upsert.send(connection, rows, {"seen_by": title, "first_seen_at": MOMENT})
    assert stored(database) == [(1, "old", MOMENT, "old", MOMENT)]


def test_an_empty_page_stores_nothing(database: Database) -> None:
    upsert = PageUpsert(items, columns=COLUMNS, constants=CONSTANTS, keep=None)
    with database.write() as connection:
        upsert.send(connection, [], {"seen_by": "a", "first_seen_at": MOMENT})
    assert stored(database) == []


def test_more_rows_than_one_statement_can_hold_are_sent_in_several(database: Database) -> None:
    upsert = PageUpsert(items, columns=COLUMNS, constants=CONSTANTS, keep=["first_seen_at"])
    rows = [(f"title {n}", n, MOMENT) for n in range(60_000)]
    with database.write() as connection:
        upsert.send(connection, rows, {"seen_by": "a", "first_seen_at": MOMENT})
    found = stored(database)
    assert (len(found), found[-1]) == (60_000, (59_999, "title 59999", MOMENT, "a", MOMENT))
