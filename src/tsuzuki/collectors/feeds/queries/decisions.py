"""What a person decides about items: approve a post, or have an item worked on again."""

from datetime import datetime

from sqlalchemy import BigInteger, Connection, bindparam, null, true, update

from tsuzuki.collectors.feeds.items.item import ItemState, requeued
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.unsettled_posts import is_looked_for
from tsuzuki.collectors.feeds.tables import WaitingState, items, waiting_items
from tsuzuki.store.sql.prepared import execute, parameters_for

_ITEM = bindparam("that_item", type_=BigInteger())
_APPROVE = (
    update(waiting_items)
    .where(waiting_items.c.item_id == _ITEM, waiting_items.c.state == WaitingState.APPROVAL.value)
    .values(state=WaitingState.READY.value, is_approved=true())
)
_END_BACKOFF = (
    update(waiting_items)
    .where(
        waiting_items.c.item_id == _ITEM,
        waiting_items.c.state == WaitingState.BACKOFF.value,
        ~is_looked_for(waiting_items.c.item_id),
    )
    .values(state=WaitingState.READY.value, not_before=null(), drawn_by_run=null())
)
_REQUEUE = (
    update(items)
    .where(
        items.c.id == _ITEM,
        items.c.status == bindparam("old_status"),
        items.c.retry_count == bindparam("old_retry_count"),
    )
    .values(**parameters_for(items, "status", "reason", "retry_count", "last_checked_at"))
)
# The change of its status has made it wait.
_WAIT_AGAIN = (
    update(waiting_items)
    .where(waiting_items.c.item_id == _ITEM)
    .values(**parameters_for(waiting_items, "order_at", "is_approved"))
)


def approve(connection: Connection, item_id: int) -> bool:
    """Let the post of an item go out with the next run. False if it does not wait for that."""
    return execute(connection, _APPROVE, {"that_item": item_id}).rowcount == 1


def end_backoff(connection: Connection, item_id: int) -> bool:
    """Make a deferred item ready now. False if it has no pause, or its post is looked for."""
    return execute(connection, _END_BACKOFF, {"that_item": item_id}).rowcount == 1


def requeue(
    connection: Connection, item: StoredItem, *, now: datetime, is_approved: bool = False
) -> bool:
    """Have a processed item worked on again; its post is held no more if that `is_approved`. False if it has changed
    since it was read. Raises `Conflict` if it was posted."""
    after: ItemState = requeued(item.state)
    checked_at = max(now, item.last_checked_at)
    values = {
        "that_item": item.id,
        "old_status": int(item.state.status),
        "old_retry_count": item.state.retry_count,
        "status": int(after.status),
        "reason": None,
        "retry_count": after.retry_count,
        "last_checked_at": checked_at,
    }
    if execute(connection, _REQUEUE, values).rowcount != 1:
        return False
    waits = {"that_item": item.id, "order_at": checked_at, "is_approved": is_approved}
    execute(connection, _WAIT_AGAIN, waits)
    return True
