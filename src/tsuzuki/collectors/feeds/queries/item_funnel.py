"""How far the newest items of feeds came. One pass over a bounded number of them, however many there are."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, bindparam, exists, func, select

from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.queries.item_lists import has_done
from tsuzuki.collectors.feeds.tables import (
    PreparationStep,
    WaitingState,
    item_details,
    items,
    waiting_items,
)
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list

_NEWEST = (
    select(item_details.c.item_id)
    .where(in_list(item_details.c.feed_id, "feed_ids"))
    .order_by(item_details.c.item_id.desc())
    .limit(bindparam("limit", type_=Integer()))
    .cte("newest")
)
_IS_SCREENED = exists(has_done(PreparationStep.SCREENING, items.c.id))
_IS_SUMMARISED = exists(has_done(PreparationStep.SUMMARY, items.c.id))
_EACH = (
    select(
        items.c.status,
        items.c.reason,
        waiting_items.c.state,
        _IS_SCREENED.label("is_screened"),
        _IS_SUMMARISED.label("is_summarised"),
    )
    .join(_NEWEST, _NEWEST.c.item_id == items.c.id)
    .outerjoin(waiting_items, waiting_items.c.item_id == items.c.id)
    .subquery("each_item")
)
_FUNNEL = select(*_EACH.c, func.count().label("number")).group_by(*_EACH.c)


class ItemGroup(NamedTuple):
    """How many items stand alike."""

    status: ItemStatus
    reason: ItemReason | None
    waiting: WaitingState | None
    is_screened: bool
    is_summarised: bool
    number: int


def groups(connection: Connection, feed_ids: Collection[int], *, at_most: int) -> list[ItemGroup]:
    """The newest items of these feeds, grouped by how they stand."""
    values = {"feed_ids": sorted(feed_ids), "limit": at_most}
    return [_group(row) for row in execute(connection, _FUNNEL, values).mappings()]


def _group(row: dict[str, Any]) -> ItemGroup:
    reason, waiting = row["reason"], row["state"]
    return ItemGroup(
        status=ItemStatus(row["status"]),
        reason=None if reason is None else ItemReason(reason),
        waiting=None if waiting is None else WaitingState(waiting),
        is_screened=bool(row["is_screened"]),
        is_summarised=bool(row["is_summarised"]),
        number=int(row["number"]),
    )
