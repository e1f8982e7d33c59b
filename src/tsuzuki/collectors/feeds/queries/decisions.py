"""What a person decides about items: approve a post, or have an item worked on again."""

from datetime import datetime

from sqlalchemy import BigInteger, Connection, bindparam, null, true, update

from tsuzuki.collectors.feeds.items.item import requeued
from tsuzuki.collectors.feeds.queries.item_moves import write_state
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.unsettled_posts import is_looked_for
from tsuzuki.collectors.feeds.tables import WaitingState, waiting_items
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
    written = write_state(connection, item, requeued(item.state), now)
    if written is None:
        return False
    waits = {"that_item": item.id, "order_at": written.last_checked_at, "is_approved": is_approved}
    execute(connection, _WAIT_AGAIN, waits)
    return True
