"""Items and what waits: what is not processed waits, and what is processed does not, also after changes by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import IntegrityError

from collectors.feeds.stored_items import NOON, add_feed, add_item
from tsuzuki.collectors.feeds.items.item import ItemState, ItemStatus
from tsuzuki.collectors.feeds.queries.inspection import problems
from tsuzuki.collectors.feeds.tables import WaitingState, items, waiting_items
from tsuzuki.store.sql.database import Database

EVERY_STATUS = [int(status) for status in ItemStatus]


def waiting(connection: Connection) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(select(waiting_items)).mappings()]


def set_status(connection: Connection, status: int) -> None:
    reason = {1: 3, 3: 0}.get(status)
    connection.execute(
        text("UPDATE items SET status = :status, reason = :reason"),
        {"status": status, "reason": reason},
    )


@pytest.mark.parametrize("before", EVERY_STATUS)
@pytest.mark.parametrize("after", EVERY_STATUS)
def test_a_status_that_is_changed_by_hand_changes_what_waits(
    feeds_database: Database, before: int, after: int
) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        add_item(connection, feed)
        for status in (before, after):
            set_status(connection, status)
            rows = waiting(connection)
            is_pending = [] if status == int(ItemStatus.PROCESSED) else [status == 2]
            assert [row["is_pending"] for row in rows] == is_pending
            assert [row["feed_id"] for row in rows] == [feed] * len(rows)
        assert problems(connection) == []


def test_an_item_that_waits_for_approval_is_ready_once_it_is_no_longer_pending(
    feeds_database: Database,
) -> None:
    with feeds_database.write() as connection:
        pending = ItemState(status=ItemStatus.PENDING)
        add_item(connection, add_feed(connection), pending, waiting=WaitingState.APPROVAL)
        set_status(connection, int(ItemStatus.UNPROCESSED))
        assert [row["state"] for row in waiting(connection)] == [WaitingState.READY]


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2024-05-01 00:00:00", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01 09:00:00+09:00", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01T00:00:00.250Z", datetime(2024, 5, 1, 0, 0, 0, 250_000, tzinfo=UTC)),
        ("2024-05-01T00:00:00.123456Z", datetime(2024, 5, 1, 0, 0, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_times_that_other_programs_write_are_read_and_ordered_as_ours(
    feeds_database: Database, written: str, moment: datetime
) -> None:
    with feeds_database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at)"
                f" VALUES ('http://a.example', 'A', '{written}', 2, 0, '{written}', '{written}')"
            )
        )
        times = (items.c.published_at, items.c.created_at, items.c.last_checked_at)
        assert connection.execute(select(*times)).one() == (moment,) * 3
        assert [row["order_at"] for row in waiting(connection)] == [moment]
        connection.execute(text(f"UPDATE items SET published_at = '{written}'"))
        assert connection.execute(select(*times)).one() == (moment,) * 3


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize(
    ("written", "microsecond"),
    [
        ("2024-04-30 19:30:00.5 -0430 VET", 500_000),
        ("2024-05-01 09:00:00.123456789 +0900 JST m=+0.012345", 123_000),
    ],
)
def test_times_as_go_prints_them_are_read(
    feeds_database: Database, written: str, microsecond: int
) -> None:
    with feeds_database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at)"
                f" VALUES ('http://a.example', 'A', '{written}', 2, 0, '{written}', '{written}')"
            )
        )
        found = connection.execute(select(items.c.published_at)).scalar_one()
        assert found == datetime(2024, 5, 1, 0, 0, 0, microsecond, tzinfo=UTC)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_what_is_not_a_time_is_refused(feeds_database: Database) -> None:
    with pytest.raises(IntegrityError), feeds_database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO items (url, title, published_at, status, retry_count, created_at, last_checked_at)"
                " VALUES ('http://a.example', 'A', 'soon', 0, 0, 'now', 'now')"
            )
        )


# --- indexes --------------------------------------------------------------------------------------

PENDING = "SELECT * FROM items WHERE status = 2 ORDER BY published_at LIMIT 1"
TO_SCREEN = "SELECT * FROM items WHERE status = {status} ORDER BY last_checked_at LIMIT 1"


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (PENDING, "idx_items_status_published_at"),
        (TO_SCREEN.format(status=0), "idx_items_status_last_checked_at"),
        (TO_SCREEN.format(status=1), "idx_items_status_last_checked_at"),
    ],
)
def test_the_first_item_of_a_status_is_read_from_an_index_and_nothing_is_sorted(
    feeds_database: Database, query: str, index: str
) -> None:
    row = {"title": "A", "retry_count": 0, "created_at": NOON, "last_checked_at": NOON}
    rows = [
        {**row, "url": f"http://a.example/{number}", "published_at": NOON, "status": status}
        for number, status in enumerate([0, 2, *[3] * 3000])
    ]
    with feeds_database.write() as connection:
        connection.execute(insert(items), rows)
        connection.execute(text("ANALYZE"))
        explain = "EXPLAIN QUERY PLAN" if feeds_database.is_sqlite else "EXPLAIN"
        plan = "\n".join(line[-1] for line in connection.execute(text(f"{explain} {query}")))
    assert index in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
