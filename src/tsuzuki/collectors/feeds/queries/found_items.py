"""Items as feeds list them: known ones looked up, new ones added with everything that belongs to them.

Every statement takes a batch of `ROWS_MAX` rows at most; the callers cut.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Table,
    Text,
    and_,
    bindparam,
    literal,
    select,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.entries.entry import FeedEntry, Unusable, stored_attachments
from tsuzuki.collectors.feeds.entries.identity import canonical_url
from tsuzuki.collectors.feeds.entries.recognition import KnownArticle
from tsuzuki.collectors.feeds.items.item import ItemStatus
from tsuzuki.collectors.feeds.tables import (
    feed_items,
    feed_unusable_entries,
    item_details,
    item_fingerprints,
    items,
    waiting_items,
)
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.types import JsonText, KeyText, PlainText, UtcTime
from tsuzuki.store.sql.value_list import in_list

ROWS_MAX = 500

UNSAID = ""
"""The content hash of an item of which no feed has said anything: another program has put it into `items`."""

_FEED = bindparam("feed", type_=BigInteger())
_NOW = bindparam("now", type_=UtcTime())
_ITEMS: Columns = {
    "url": KeyText(),
    "title": PlainText(),
    "published_at": UtcTime(),
    "status": Integer(),
}
_SAID: Columns = {
    "item_id": BigInteger(),
    "author": PlainText(),
    "categories": JsonText(),
    "excerpt": PlainText(),
    "attachments": JsonText(),
    "content_hash": Text(),
}
_DETAILS: Columns = {**_SAID, "canonical_url": KeyText(), "cause": PlainText()}
_ITEM_IDS: Columns = {"item_id": BigInteger()}
_FINGERPRINTS: Columns = {"fingerprint": Text(), "item_id": BigInteger()}
_UNUSABLE: Columns = {"entry_hash": Text(), "title": PlainText(), "problem": PlainText()}


@dataclass(frozen=True, kw_only=True)
class KnownItem:
    """What is known of an item that a feed lists. An item has no owner if another program has put it into `items`."""

    item_id: int
    owner_feed_id: int | None
    content_hash: str | None
    is_listed: bool
    """Whether this feed has listed it before."""


_BY_FINGERPRINT = select(item_fingerprints).where(
    in_list(item_fingerprints.c.fingerprint, "fingerprints")
)
_BY_URL = select(items.c.url, items.c.id).where(in_list(items.c.url, "urls"))
_KNOWN = (
    select(
        items.c.id.label("item_id"),
        item_details.c.feed_id.label("owner_feed_id"),
        item_details.c.content_hash,
        feed_items.c.item_id.label("listed_item_id"),
    )
    .outerjoin(item_details, item_details.c.item_id == items.c.id)
    .outerjoin(feed_items, and_(feed_items.c.item_id == items.c.id, feed_items.c.feed_id == _FEED))
    .where(in_list(items.c.id, "item_ids"))
)
_ARTICLES = (
    select(
        items.c.id,
        items.c.url,
        items.c.title,
        items.c.published_at,
        items.c.created_at,
        item_details.c.canonical_url,
        item_details.c.content_hash,
    )
    .outerjoin(item_details, item_details.c.item_id == items.c.id)
    .where(in_list(items.c.id, "item_ids"))
)


def ids_by_fingerprint(connection: Connection, fingerprints: Collection[str]) -> dict[str, int]:
    """Which of the fingerprints are known, and of which items."""
    rows = execute(connection, _BY_FINGERPRINT, {"fingerprints": list(fingerprints)})
    return dict(rows.all())


def ids_by_url(connection: Connection, urls: Collection[str]) -> dict[str, int]:
    return dict(execute(connection, _BY_URL, {"urls": list(urls)}).all())


def known_items(connection: Connection, feed_id: int, item_ids: Collection[int]) -> list[KnownItem]:
    """What is known of items, seen from a feed."""
    rows = execute(connection, _KNOWN, {"feed": feed_id, "item_ids": list(item_ids)})
    return [
        KnownItem(
            item_id=item_id,
            owner_feed_id=owner,
            content_hash=content_hash,
            is_listed=listed is not None,
        )
        for item_id, owner, content_hash, listed in rows.all()
    ]


def known_articles(connection: Connection, item_ids: Collection[int]) -> list[KnownArticle]:
    """What a reader saw of items."""
    rows = execute(connection, _ARTICLES, {"item_ids": list(item_ids)})
    return [
        KnownArticle(
            item_id=item_id,
            canonical_url=canonical or canonical_url(url),
            title=title,
            # An item without a date was given the time at which it was added.
            published_at=None if published_at == created_at else published_at,
            content_hash=content_hash,
        )
        for item_id, url, title, published_at, created_at, canonical, content_hash in rows.all()
    ]


def add_items(
    connection: Connection, found: Sequence[tuple[FeedEntry, ItemStatus]], *, now: datetime
) -> dict[str, int]:
    """New items, by url. A url that is stored leaves its row untouched, and is not among them."""
    rows = [
        (entry.url, entry.title, entry.published_at or now, status.value) for entry, status in found
    ]
    return dict(execute_batch(connection, _add_items, _ITEMS, rows, {"now": now}).all())


@lru_cache
def _add_items(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _ITEMS, varying)
    values = {
        **dict(batch.c.items()),
        "retry_count": literal(0, Integer()),
        "created_at": _NOW,
        "last_checked_at": _NOW,
    }
    insert = insert_from(dialect, items, values)
    return insert.on_conflict_do_nothing().returning(items.c.url, items.c.id)


def add_details(
    connection: Connection, feed_id: int, found: Sequence[tuple[int, FeedEntry, str | None]]
) -> None:
    """What the feed says about items that are new, or of which no feed has said anything. It owns them from now on."""
    rows = [(*_said(item_id, entry), entry.canonical_url, cause) for item_id, entry, cause in found]
    execute_batch(connection, _add_details, _DETAILS, rows, {"feed": feed_id})


@lru_cache
def _add_details(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _DETAILS, varying)
    insert = insert_from(dialect, item_details, {**dict(batch.c.items()), "feed_id": _FEED})
    return insert.on_conflict_do_update(
        index_elements=["item_id"],
        set_={name: insert.excluded[name] for name in (*_DETAILS, "feed_id")},
        where=item_details.c.content_hash == UNSAID,
    )


def own_waiting(connection: Connection, feed_id: int, item_ids: Sequence[int]) -> None:
    """Give items that wait without a feed to this one. New items do: the triggers let them wait."""
    rows = [(item_id,) for item_id in item_ids]
    execute_batch(connection, _own_waiting, _ITEM_IDS, rows, {"feed": feed_id})


@lru_cache
def _own_waiting(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _ITEM_IDS, varying)
    return (
        update(waiting_items)
        .where(waiting_items.c.item_id == batch.c.item_id, waiting_items.c.feed_id.is_(None))
        .values(feed_id=_FEED)
    )


def set_changed(
    connection: Connection, changed: Sequence[tuple[int, FeedEntry]], *, now: datetime
) -> None:
    """The feed that owns these items says something else about them now."""
    rows = [_said(item_id, entry) for item_id, entry in changed]
    execute_batch(connection, _set_changed, _SAID, rows, {"now": now})


@lru_cache
def _set_changed(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _SAID, varying)
    said = {name: batch.c[name] for name in _SAID if name != "item_id"}
    return (
        update(item_details)
        .where(item_details.c.item_id == batch.c.item_id)
        .values(changed_at=_NOW, **said)
    )


def add_fingerprints(connection: Connection, found: Iterable[tuple[str, int]]) -> None:
    """By which items are known again. A fingerprint stays with the item that had it first."""
    rows = sorted(found)
    for first in range(0, len(rows), ROWS_MAX):
        batch = rows[first : first + ROWS_MAX]
        execute_batch(connection, _add_fingerprints, _FINGERPRINTS, batch)


@lru_cache
def _add_fingerprints(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    return _add_unless_stored(dialect, item_fingerprints, _FINGERPRINTS, varying)


def add_listed(
    connection: Connection, feed_id: int, item_ids: Collection[int], *, now: datetime
) -> None:
    """Items that this feed lists, since when."""
    rows = [(item_id,) for item_id in sorted(item_ids)]
    execute_batch(connection, _add_listed, _ITEM_IDS, rows, {"feed": feed_id, "now": now})


@lru_cache
def _add_listed(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    more = {"feed_id": _FEED, "first_seen_at": _NOW}
    return _add_unless_stored(dialect, feed_items, _ITEM_IDS, varying, more)


def add_unusable(
    connection: Connection, feed_id: int, found: Sequence[Unusable], *, now: datetime
) -> None:
    """Entries that cannot be items, once each."""
    distinct = {one.entry_hash: (one.entry_hash, one.title, one.problem) for one in found}
    rows = list(distinct.values())
    for first in range(0, len(rows), ROWS_MAX):
        execute_batch(
            connection,
            _add_unusable,
            _UNUSABLE,
            rows[first : first + ROWS_MAX],
            {"feed": feed_id, "now": now},
        )


@lru_cache
def _add_unusable(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    more = {"feed_id": _FEED, "first_seen_at": _NOW}
    return _add_unless_stored(dialect, feed_unusable_entries, _UNUSABLE, varying, more)


def _add_unless_stored(
    dialect: Dialect,
    table: Table,
    columns: Columns,
    varying: tuple[str, ...],
    more: dict[str, Any] | None = None,
) -> Any:
    values = {**dict(unpack(dialect, columns, varying).c.items()), **(more or {})}
    return insert_from(dialect, table, values).on_conflict_do_nothing()


def _said(item_id: int, entry: FeedEntry) -> tuple[Any, ...]:
    """In the order of `_SAID`."""
    return (
        item_id,
        entry.author,
        list(entry.categories),
        entry.excerpt,
        stored_attachments(entry),
        entry.content_hash,
    )
