"""Feeds and items written straight into the tables, in any state."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update

from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.tables import (
    WaitingState,
    feeds,
    item_details,
    items,
    waiting_items,
)

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def add_feed(connection: Connection, name: str = "news", **values: Any) -> int:
    row = {
        "job_name": "bot",
        "name": name,
        "url": f"https://{name}.example/feed",
        "is_conditional": True,
        "failures": 0,
        **values,
    }
    return int(connection.execute(insert(feeds).values(row).returning(feeds.c.id)).scalar_one())


def add_item(
    connection: Connection,
    feed_id: int,
    state: ItemState | None = None,
    *,
    published_at: datetime = NOON,
    checked_at: datetime = NOON,
    waiting: WaitingState = WaitingState.READY,
    **waits: Any,
) -> int:
    """An item with the rows beside it that its state asks for."""
    state = state or ItemState()
    number = len(connection.execute(select(items.c.id)).all()) + 1
    written = {
        "url": f"https://news.example/{number}",
        "title": f"Article {number}",
        "published_at": published_at,
        "status": int(state.status),
        "reason": None if state.reason is None else int(state.reason),
        "retry_count": state.retry_count,
        "created_at": min(checked_at, NOON - timedelta(days=30)),
        "last_checked_at": checked_at,
    }
    item_id = int(
        connection.execute(insert(items).values(written).returning(items.c.id)).scalar_one()
    )
    details = {
        "item_id": item_id,
        "feed_id": feed_id,
        "canonical_url": written["url"],
        "categories": [],
        "excerpt": "",
        "attachments": [],
        "content_hash": "0",
    }
    connection.execute(insert(item_details).values(details))
    if state.status is not ItemStatus.PROCESSED:
        is_pending = state.status is ItemStatus.PENDING
        row = {
            "feed_id": feed_id,
            "state": waiting.value,
            "is_pending": is_pending,
            "order_at": published_at if is_pending else checked_at,
            **waits,
        }
        connection.execute(
            update(waiting_items).where(waiting_items.c.item_id == item_id).values(row)
        )
    return item_id


ALL_STATES = [
    ItemState(status=ItemStatus.UNPROCESSED),
    *(
        ItemState(status=ItemStatus.DEFERRED, reason=reason, retry_count=count)
        for reason in list(ItemReason)[1:6]
        for count in (1, 3)
    ),
    ItemState(status=ItemStatus.PENDING),
    ItemState(status=ItemStatus.PENDING, retry_count=3),
]
"""Every kind of state that an item waits in."""
