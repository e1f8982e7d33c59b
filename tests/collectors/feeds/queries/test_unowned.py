"""Items that another program has put into `items` get a feed."""

import pytest
from sqlalchemy import insert, select

from collectors.feeds.stored_items import NOON
from tsuzuki.collectors.feeds.queries import items as item_queries
from tsuzuki.collectors.feeds.queries import unowned
from tsuzuki.collectors.feeds.tables import feeds, items, waiting_items
from tsuzuki.store.sql.database import Database

FEEDS = {
    1: {"url": "https://first.example/feed"},
    2: {"url": "https://gone.example/feed", "removed_at": NOON},
    3: {"url": "https://old.example/feed", "moved_to": "https://news.example/feed"},
}


@pytest.mark.parametrize(
    ("url", "feed_id"),
    [
        ("https://news.example/1", 3),
        ("https://first.example/1", 1),
        ("https://gone.example/1", 1),
        ("https://unknown.example/1", 1),
        ("http://[broken", 1),
        ("not a link", 1),
    ],
)
def test_an_item_goes_to_the_feed_on_its_host_or_to_the_first(
    feeds_database: Database, url: str, feed_id: int
) -> None:
    row = {"title": "A", "status": 0, "retry_count": 0, "published_at": NOON}
    row |= {"created_at": NOON, "last_checked_at": NOON}
    with feeds_database.write() as connection:
        for number, feed in FEEDS.items():
            name = {"id": number, "job_name": "bot", "name": f"feed{number}"}
            connection.execute(
                insert(feeds).values(**name, is_conditional=True, failures=0, **feed)
            )
        connection.execute(insert(items).values(url=url, **row))
        assert unowned.give_to_feeds(connection) == 1
        assert unowned.give_to_feeds(connection) == 0
        assert connection.execute(select(waiting_items.c.feed_id)).scalars().all() == [feed_id]
        item = item_queries.draw(connection, feed_ids=[feed_id], run_id=7)
        assert item is not None
        assert (item.url, item.canonical_url, item.feed_id) == (url, url, feed_id)
