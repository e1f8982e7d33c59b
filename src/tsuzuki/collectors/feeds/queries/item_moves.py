"""The moves of an item that a run holds: pending, deferred, processed, held for approval, given back.

`feeds.items` has the rules; here they are written, `items` and `waiting_items` together. Every move names the state
it leaves and the run that holds the item, so of two runs one does nothing.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    bindparam,
    delete,
    false,
    null,
    true,
    update,
)

from tsuzuki.collectors.feeds.items.item import (
    ItemReason,
    ItemState,
    ItemStatus,
    deferred,
    found_posted,
    posted,
    screened_valuable,
)
from tsuzuki.collectors.feeds.queries.items import StoredItem, get
from tsuzuki.collectors.feeds.tables import WaitingState, item_pages, items, waiting_items
from tsuzuki.store.sql.prepared import ResultRows, execute, parameters_for

_ITEM = bindparam("that_item", type_=BigInteger())
_RUN = bindparam("run_id", type_=BigInteger())
_IS_HELD = (
    waiting_items.c.item_id == _ITEM,
    waiting_items.c.state == WaitingState.TAKEN.value,
    waiting_items.c.held_by_run == _RUN,
)
_WRITE_STATE = (
    update(items)
    .where(
        items.c.id == _ITEM,
        items.c.status == bindparam("old_status"),
        items.c.retry_count == bindparam("old_retry_count"),
    )
    .values(**parameters_for(items, "status", "reason", "retry_count", "last_checked_at"))
)
_BECOME_PENDING = (
    update(waiting_items)
    .where(*_IS_HELD)
    .values(is_pending=true(), **parameters_for(waiting_items, "order_at"))
)
_ENTER_BACKOFF = (
    update(waiting_items)
    .where(*_IS_HELD)
    .values(
        state=WaitingState.BACKOFF.value,
        is_pending=false(),
        held_by_run=null(),
        **parameters_for(waiting_items, "order_at", "not_before"),
    )
)
_AWAIT_APPROVAL = (
    update(waiting_items)
    .where(*_IS_HELD)
    .values(state=WaitingState.APPROVAL.value, held_by_run=null())
)
_GIVE_BACK = (
    update(waiting_items)
    .where(*_IS_HELD)
    .values(state=WaitingState.READY.value, held_by_run=null(), drawn_by_run=null())
)
_TAKE_WAITING = (
    update(waiting_items)
    .where(waiting_items.c.item_id == _ITEM, waiting_items.c.state != WaitingState.TAKEN.value)
    .values(state=WaitingState.TAKEN.value, not_before=null(), held_by_run=_RUN)
)
_STOP_WAITING = delete(waiting_items).where(*_IS_HELD)
_DROP_PAGE = delete(item_pages).where(item_pages.c.item_id == _ITEM)


class NotHeld(Exception):
    """The run does not hold the item, or the item is not in the state it was read in."""


def move_to_pending(
    connection: Connection, item: StoredItem, *, run_id: int, now: datetime
) -> StoredItem:
    """It is worth a post. The run keeps it."""
    after = screened_valuable(item.state)
    _change_waiting(connection, _BECOME_PENDING, item, run_id, order_at=item.published_at)
    return _write_held_state(connection, item, after, now)


def defer(
    connection: Connection,
    item: StoredItem,
    reason: ItemReason,
    *,
    retry_limit: int,
    not_before: datetime,
    run_id: int,
    now: datetime,
) -> StoredItem:
    """Put it off until `not_before`; or, if that was done more often than `retry_limit`, give it up."""
    after = deferred(item.state, reason, retry_limit)
    if after.status is ItemStatus.PROCESSED:
        return _process(connection, item, after, run_id, now)
    moved = _write_held_state(connection, item, after, now)
    _change_waiting(
        connection,
        _ENTER_BACKOFF,
        item,
        run_id,
        order_at=moved.last_checked_at,
        not_before=not_before,
    )
    return moved


def finish_posted(
    connection: Connection, item: StoredItem, *, run_id: int, now: datetime
) -> StoredItem:
    """It was posted."""
    return _process(connection, item, posted(item.state), run_id, now)


def finish_found(connection: Connection, item_id: int, *, run_id: int, now: datetime) -> None:
    """Its post was found to have arrived while the item waits, in any state, or after it was given up."""
    is_waiting = execute(connection, _TAKE_WAITING, {"that_item": item_id, "run_id": run_id})
    item = get(connection, item_id)
    if item is None:
        raise AssertionError("an item is never deleted")
    if is_waiting.rowcount != 1:
        if item.state.reason is ItemReason.RETRY_LIMIT_EXCEEDED:
            _write_held_state(connection, item, found_posted(item.state), now)
        return
    if item.state.status is not ItemStatus.PENDING:
        item = move_to_pending(connection, item, run_id=run_id, now=now)
    finish_posted(connection, item, run_id=run_id, now=now)


def hold_for_approval(connection: Connection, item: StoredItem, *, run_id: int) -> None:
    """Keep it pending until a person approves its post."""
    _change_waiting(connection, _AWAIT_APPROVAL, item, run_id)


def give_back(connection: Connection, item: StoredItem, *, run_id: int) -> None:
    """Leave it as it was before it was drawn: what stopped the run is not the item's doing."""
    _change_waiting(connection, _GIVE_BACK, item, run_id)


def _process(
    connection: Connection, item: StoredItem, after: ItemState, run_id: int, now: datetime
) -> StoredItem:
    _change_waiting(connection, _STOP_WAITING, item, run_id)
    execute(connection, _DROP_PAGE, {"that_item": item.id})
    return _write_held_state(connection, item, after, now)


def _change_waiting(
    connection: Connection, statement: Any, item: StoredItem, run_id: int, **values: Any
) -> None:
    _require_one(
        execute(connection, statement, {"that_item": item.id, "run_id": run_id, **values}), item
    )


def write_state(
    connection: Connection, item: StoredItem, after: ItemState, now: datetime
) -> StoredItem | None:
    """The item after the change of its state; None if it has changed since it was read."""
    checked_at = max(now, item.last_checked_at)  # a clock may have been put back
    values = {
        "that_item": item.id,
        "old_status": int(item.state.status),
        "old_retry_count": item.state.retry_count,
        "status": int(after.status),
        "reason": None if after.reason is None else int(after.reason),
        "retry_count": after.retry_count,
        "last_checked_at": checked_at,
    }
    if execute(connection, _WRITE_STATE, values).rowcount != 1:
        return None
    return replace(item, state=after, last_checked_at=checked_at)


def _write_held_state(
    connection: Connection, item: StoredItem, after: ItemState, now: datetime
) -> StoredItem:
    written = write_state(connection, item, after, now)
    if written is None:
        raise NotHeld(f"this run does not hold item {item.id}")
    return written


def _require_one(rows: ResultRows, item: StoredItem) -> None:
    if rows.rowcount != 1:
        raise NotHeld(f"this run does not hold item {item.id}")
