"""The choice of the next item, among many that are processed and many that wait in feeds that are capped or held.

python -m bench.feeds.draw <database URL> [<processed> <waiting>]

Open feeds have items for approval and some that are ready; the feeds at a cap have ready items only. Every draw is one
call of `queries.items.draw` in a transaction of its own, as in a run. Its start and its commit are not measured: a run
draws in the transaction that records the post before. Prints milliseconds.
"""

import statistics
import sys
import time
from datetime import UTC, datetime

from sqlalchemy import Connection, insert, text

from bench.feeds.figures import say
from tsuzuki.collectors.feeds.queries import items as item_queries
from tsuzuki.collectors.feeds.tables import COMPONENT, feeds, items
from tsuzuki.model.clock import SystemClock
from tsuzuki.store.schema.migrate import ENGINE, upgrade
from tsuzuki.store.sql.database import Database, open_database

OPEN_FEEDS, CAPPED_FEEDS = 10, 20
READY, FIRST_ROWS, DRAWS, WARM_UP = 1_000, 1_000, 500, 20
DAY = datetime(2026, 4, 1, tzinfo=UTC)

DOUBLE = """
INSERT INTO items (url, title, published_at, status, reason, retry_count, created_at, last_checked_at)
SELECT url || :mark, title, published_at, status, reason, retry_count, created_at, last_checked_at
FROM items WHERE id <= :most"""
WAIT = "UPDATE items SET status = CASE WHEN id % 2 = 0 THEN 2 ELSE 0 END, reason = NULL WHERE id <= :most"
PEND = "UPDATE items SET status = 2 WHERE id > :ready AND id <= :held"
DETAILS = """
INSERT INTO tsuzuki_item_details (item_id, feed_id, canonical_url, categories, excerpt, attachments, content_hash)
SELECT id, CASE WHEN id <= :held THEN 1 + id % :open ELSE :open + 1 + id % :capped END, url, '[]', '', '[]', 'x'
FROM items"""
WAITING = """
UPDATE tsuzuki_waiting_items SET
  feed_id = (SELECT feed_id FROM tsuzuki_item_details AS d WHERE d.item_id = tsuzuki_waiting_items.item_id),
  state = CASE WHEN item_id > :ready AND item_id <= :held THEN 'approval' ELSE 'ready' END,
  order_at = (SELECT last_checked_at FROM items WHERE items.id = tsuzuki_waiting_items.item_id)
WHERE item_id <= :most"""


def fill(database: Database, processed: int, waiting: int) -> None:
    """Half of those that wait are for approval, half are in feeds at a cap; some more are ready."""
    most, held = waiting + READY, waiting // 2 + READY
    with database.write() as connection:
        for number in range(1, OPEN_FEEDS + CAPPED_FEEDS + 1):
            name = {"job_name": "bot", "name": f"feed{number}", "url": f"http://{number}.example"}
            row = {**name, "is_conditional": True, "failures": 0}
            connection.execute(insert(feeds).values(row))
        _fill_items(connection, processed + most)
        feed_counts = {"open": OPEN_FEEDS, "capped": CAPPED_FEEDS}
        connection.execute(text(WAIT), {"most": most})
        connection.execute(text(PEND), {"ready": READY, "held": held})
        connection.execute(text(DETAILS), {"held": held, **feed_counts})
        connection.execute(text(WAITING), {"ready": READY, "held": held, "most": most})
    if not database.is_sqlite:
        with database.write() as connection:
            connection.execute(text("ANALYZE"))  # as its autovacuum does


def _fill_items(connection: Connection, count: int) -> None:
    """A first thousand, doubled until there are enough."""
    row = {"title": "News", "published_at": DAY, "status": 3, "reason": 0, "retry_count": 0}
    row |= {"created_at": DAY, "last_checked_at": DAY}
    first = [{**row, "url": f"http://news.example/{number}"} for number in range(FIRST_ROWS)]
    connection.execute(insert(items), first)
    there = FIRST_ROWS
    while there < count:
        most = min(there, count - there)
        connection.execute(text(DOUBLE), {"mark": f"/{there}", "most": most})
        there += most


def measure(database: Database) -> list[float]:
    """Milliseconds of each draw."""
    took = []
    open_ids = range(1, OPEN_FEEDS + 1)
    for _ in range(WARM_UP + DRAWS):
        with database.write() as connection:
            connection.execute(text("SELECT 1"))
            started = time.perf_counter()
            item = item_queries.draw(connection, feed_ids=open_ids, run_id=1)
            took.append(1000 * (time.perf_counter() - started))
        assert item is not None
        assert item.id <= READY, item
    return took[WARM_UP:]


def main() -> None:
    url, *counts = sys.argv[1:]
    processed, waiting = (int(count) for count in counts or (1_000_000, 100_000))
    database = open_database(url, clock=SystemClock())
    upgrade(database, [ENGINE, COMPONENT])
    fill(database, processed, waiting)
    took = measure(database)
    p95 = statistics.quantiles(took, n=20)[18]
    say(count=processed + waiting, median_ms=statistics.median(took), p95_ms=p95)
    database.close()


if __name__ == "__main__":
    main()
