"""Items: drawing the next one for a run.

The rule: the pending item that was published first; if there is none, the unprocessed or deferred one that was
checked longest ago. `waiting_items` has one row for each item that is not processed, in the order of this rule, so
the choice costs the same however many are processed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Text,
    bindparam,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)

from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.queries.unsettled_posts import (
    is_looked_for,
    items_looked_for,
    next_look_of,
)
from tsuzuki.collectors.feeds.tables import (
    WaitingState,
    feeds,
    item_details,
    items,
    waiting_items,
)
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list


@dataclass(frozen=True, kw_only=True)
class StoredItem:
    """An item as it is stored, with the feed that owns it and what that said about it."""

    id: int
    url: str
    title: str
    published_at: datetime
    state: ItemState
    created_at: datetime
    last_checked_at: datetime
    feed_id: int | None
    """None if no feed has listed it: another program has put it into `items`."""

    canonical_url: str
    author: str | None
    attachments: list[dict[str, Any]]
    content_hash: str
    cause: str | None
    """Why it is processed without a reason: filtered, or older than the first fetch."""

    waiting: WaitingState | None
    """None once it is processed."""

    not_before: datetime | None
    is_approved: bool | None


_RUN = bindparam("run_id", type_=BigInteger())
_ITEM = bindparam("that_item", type_=BigInteger())


# Written out, not as parameters: PostgreSQL plans a LIMIT that it does not know anew at each execution.
_ONE: ColumnElement[int] = literal_column("1")
_READY: ColumnElement[str] = literal_column(f"'{WaitingState.READY.value}'")


def _first_of_feed(*, is_pending: bool) -> Any:
    """The item of a feed that is next, among its pending or its other items."""
    candidate = waiting_items.alias("candidate")
    return (
        select(candidate.c.item_id)
        .where(
            candidate.c.feed_id == feeds.c.id,
            candidate.c.state == _READY,
            candidate.c.is_pending.is_(is_pending),
            or_(candidate.c.drawn_by_run.is_(None), candidate.c.drawn_by_run != _RUN),
        )
        .order_by(candidate.c.order_at, candidate.c.item_id)
        .limit(_ONE)
        .correlate(feeds)
        .scalar_subquery()
    )


def _next_item(*, is_pending: bool) -> Any:
    """The item that is next, among the first ones of the feeds."""
    first = waiting_items.alias("first")
    return (
        select(first.c.item_id)
        .select_from(feeds.join(first, first.c.item_id == _first_of_feed(is_pending=is_pending)))
        .where(in_list(feeds.c.id, "feed_ids"))
        .order_by(first.c.order_at, first.c.item_id)
        .limit(_ONE)
        .scalar_subquery()
    )


_NEXT_OTHER = _next_item(is_pending=False)
_NEXT = func.coalesce(_next_item(is_pending=True), _NEXT_OTHER)
_SELECT_NEXT_ID = select(_NEXT)
_TAKE = (
    update(waiting_items)
    .where(waiting_items.c.item_id == _NEXT, waiting_items.c.state == _READY)
    .values(state=WaitingState.TAKEN.value, held_by_run=_RUN, drawn_by_run=_RUN)
    .returning(waiting_items.c.item_id)
)
SELECT_ITEMS = (
    select(
        items,
        item_details.c.feed_id,
        item_details.c.canonical_url,
        item_details.c.author,
        item_details.c.attachments,
        item_details.c.content_hash,
        item_details.c.cause,
        waiting_items.c.state.label("waiting"),
        waiting_items.c.not_before,
        waiting_items.c.is_approved,
    )
    .outerjoin(item_details, item_details.c.item_id == items.c.id)
    .outerjoin(waiting_items, waiting_items.c.item_id == items.c.id)
)
"""What an `StoredItem` is read from; `item_from` reads a row of it."""

_SELECT = SELECT_ITEMS.where(items.c.id == _ITEM)
_SELECT_NEXT_OTHER = SELECT_ITEMS.where(items.c.id == _NEXT_OTHER)
_HOLDER_IS_RUNNING = (
    select(job_runs.c.id)
    .where(job_runs.c.id == waiting_items.c.held_by_run, job_runs.c.state == RunState.RUNNING.value)
    .exists()
)
_RELEASE = (
    update(waiting_items)
    .where(
        waiting_items.c.held_by_run.is_not(None),
        or_(waiting_items.c.held_by_run == _RUN, ~_HOLDER_IS_RUNNING),
    )
    .values(state=WaitingState.READY.value, held_by_run=null(), drawn_by_run=null())
)
_END_BACKOFF = (
    update(waiting_items)
    .where(
        waiting_items.c.not_before <= bindparam("now", type_=UtcTime()),
        in_list(waiting_items.c.feed_id, "feed_ids"),
        ~is_looked_for(waiting_items.c.item_id),
    )
    .values(state=WaitingState.READY.value, not_before=null())
)
_KEEP_BACK = (
    update(waiting_items)
    .where(
        waiting_items.c.item_id.in_(items_looked_for(bindparam("job", type_=Text()))),
        waiting_items.c.state == _READY,
    )
    .values(
        state=WaitingState.BACKOFF.value,
        not_before=next_look_of(waiting_items.c.item_id),
        drawn_by_run=null(),
    )
)


def release_abandoned(connection: Connection, *, run_id: int) -> int:
    """Give back what is held by a run that is no longer RUNNING, or by an earlier execution of this one. Returns
    how many items these were."""
    return execute(connection, _RELEASE, {"run_id": run_id}).rowcount


def end_backoff(connection: Connection, *, feed_ids: Collection[int], now: datetime) -> int:
    """Make the deferred items ready whose pause is over, except those whose posts are looked for. Done once in a run,
    at its start."""
    values = {"feed_ids": sorted(feed_ids), "now": now}
    return execute(connection, _END_BACKOFF, values).rowcount


def keep_back_unsettled(connection: Connection, job_name: str) -> int:
    """Put off the ready items of a job whose posts are looked for, as after a crash. Returns how many these were."""
    return execute(connection, _KEEP_BACK, {"job": job_name}).rowcount


def draw(connection: Connection, *, feed_ids: Collection[int], run_id: int) -> StoredItem | None:
    """Take the next item of these feeds for a run, or None if there is none that it has not drawn before."""
    values = {"feed_ids": sorted(feed_ids), "run_id": run_id}
    while (item_id := execute(connection, _TAKE, values).scalar_one_or_none()) is None:
        # On PostgreSQL another run may have taken it meanwhile.
        if execute(connection, _SELECT_NEXT_ID, values).scalar_one() is None:
            return None
    return get(connection, item_id)


def following(
    connection: Connection, *, feed_ids: Collection[int], run_id: int
) -> StoredItem | None:
    """The item that is drawn next, if none becomes pending or ready before. It is left as it is."""
    values = {"feed_ids": sorted(feed_ids), "run_id": run_id}
    row = execute(connection, _SELECT_NEXT_OTHER, values).mapping_or_none()
    return None if row is None else item_from(row)


_UPCOMING = (
    SELECT_ITEMS.where(
        in_list(waiting_items.c.feed_id, "feed_ids"),
        or_(
            waiting_items.c.state == WaitingState.READY.value,
            waiting_items.c.not_before <= bindparam("now", type_=UtcTime()),
        ),
        ~is_looked_for(items.c.id),
    )
    .order_by(waiting_items.c.is_pending.desc(), waiting_items.c.order_at, items.c.id)
    .limit(bindparam("most", type_=BigInteger()))
)


def upcoming(
    connection: Connection, *, feed_ids: Collection[int], now: datetime, limit: int
) -> list[StoredItem]:
    """The items that a run would draw now, in that order, if none of the feeds is closed."""
    values = {"feed_ids": sorted(feed_ids), "now": now, "most": limit}
    return [item_from(row) for row in execute(connection, _UPCOMING, values).mappings()]


def get(connection: Connection, item_id: int) -> StoredItem | None:
    row = execute(connection, _SELECT, {"that_item": item_id}).mapping_or_none()
    return None if row is None else item_from(row)


def item_from(row: dict[str, Any]) -> StoredItem:
    reason = row.pop("reason")
    state = ItemState(
        status=ItemStatus(row.pop("status")),
        reason=None if reason is None else ItemReason(reason),
        retry_count=row.pop("retry_count"),
    )
    waiting = row.pop("waiting")
    if row["feed_id"] is None:
        row |= {"canonical_url": row["url"], "attachments": [], "content_hash": ""}
    return StoredItem(state=state, waiting=waiting and WaitingState(waiting), **row)
