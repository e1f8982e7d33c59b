"""Items that wait without a feed, because another program has put them into `items`: given to a feed that is followed.

A feed that lists such an item owns it (`found`). The rest goes to the first feed on the same host, else to the first
feed of all, so that nothing waits for ever.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import BigInteger, Connection, Text, bindparam, literal, select
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.queries import found_items
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed, find
from tsuzuki.collectors.feeds.tables import item_details, items, waiting_items
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.types import JsonText, KeyText, PlainText

_FEED = bindparam("feed", type_=BigInteger())
_COLUMNS: Columns = {"item_id": BigInteger(), "canonical_url": KeyText()}
_WITHOUT_FEED = (
    select(waiting_items.c.item_id, items.c.url)
    .join(items, items.c.id == waiting_items.c.item_id)
    .where(waiting_items.c.feed_id.is_(None))
    .limit(found_items.ROWS_MAX)
)


def give_to_feeds(connection: Connection) -> int:
    """Give every item that waits without a feed to one; how many these were."""
    given = 0
    while rows := execute(connection, _WITHOUT_FEED).all():
        known = sorted(find(connection), key=lambda feed: feed.id)
        followed = [feed for feed in known if feed.removed_at is None]
        by_feed: dict[int, list[tuple[int, str]]] = {}
        for item_id, url in rows:
            by_feed.setdefault(_feed_for(url, followed).id, []).append((item_id, url))
        for feed_id, found in by_feed.items():
            execute_batch(connection, _add_details, _COLUMNS, found, {"feed": feed_id})
            found_items.own_waiting(connection, feed_id, [item_id for item_id, _url in found])
        given += len(rows)
    return given


def _feed_for(url: str, followed: Sequence[StoredFeed]) -> StoredFeed:
    host = _host(url)
    on_host = (feed for feed in followed if host and _host(feed.moved_to or feed.url) == host)
    return next(on_host, followed[0])


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@lru_cache
def _add_details(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _COLUMNS, varying)
    values = {
        **dict(batch.c.items()),
        "feed_id": _FEED,
        "categories": literal([], JsonText()),
        "excerpt": literal("", PlainText()),
        "attachments": literal([], JsonText()),
        "content_hash": literal(found_items.UNSAID, Text()),
    }
    return insert_from(dialect, item_details, values).on_conflict_do_nothing()
