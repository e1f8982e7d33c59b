"""Lists and counts of items, for people."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.queries.items import SELECT_ITEMS, StoredItem, item_from
from tsuzuki.collectors.feeds.tables import (
    PreparationStep,
    StepState,
    WaitingState,
    feed_items,
    feeds,
    item_details,
    item_steps,
    items,
    waiting_items,
)
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.value_list import in_list


@dataclass(frozen=True, kw_only=True)
class ItemFilter:
    """What a list of items is narrowed to; None does not narrow it."""

    feed_ids: Collection[int] | None = None
    statuses: Collection[ItemStatus] | None = None
    reasons: Collection[ItemReason] | None = None
    waiting: WaitingState | None = None
    is_held: bool | None = None
    """Only those that are held for approval; or only the others that wait."""

    step: PreparationStep | None = None
    """Only those for which it was done."""

    words: str | None = None
    before_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class ItemCounts:
    """How many items of a feed are in each state."""

    unprocessed: int = 0
    deferred: int = 0
    pending: int = 0
    processed: int = 0
    posted: int = 0
    approval: int = 0
    """Of the pending ones, those that wait for a person."""


def find(connection: Connection, wanted: ItemFilter, *, limit: int) -> list[StoredItem]:
    """Items, the newest first."""
    statement = _narrowed(SELECT_ITEMS, wanted).order_by(items.c.id.desc()).limit(limit)
    return [item_from(dict(row)) for row in connection.execute(statement).mappings()]


def count(connection: Connection, wanted: ItemFilter, *, at_most: int) -> int:
    """How many items there are, counted no further than `at_most`."""
    found = _narrowed(SELECT_ITEMS.with_only_columns(items.c.id), wanted).limit(at_most)
    statement = select(func.count()).select_from(found.subquery())
    return int(connection.execute(statement).scalar_one())


def has_done(step: PreparationStep, item_id: ColumnElement[int]) -> Select[Any]:
    """A row if the step was done for the item at any time."""
    return select(literal_column("1")).where(
        item_steps.c.item_id == item_id,
        item_steps.c.step == literal_column(f"'{step.value}'"),
        item_steps.c.state == literal_column(f"'{StepState.DONE.value}'"),
    )


def _narrowed(statement: Select[Any], wanted: ItemFilter) -> Select[Any]:
    if wanted.feed_ids is not None:
        statement = statement.where(item_details.c.feed_id.in_(wanted.feed_ids))
    if wanted.statuses is not None:
        statement = statement.where(items.c.status.in_([int(status) for status in wanted.statuses]))
    if wanted.reasons is not None:
        statement = statement.where(items.c.reason.in_([int(reason) for reason in wanted.reasons]))
    if wanted.is_held is not None:
        held = waiting_items.c.state == WaitingState.APPROVAL.value
        statement = statement.where(held if wanted.is_held else ~held)
    if wanted.waiting is not None:
        statement = statement.where(waiting_items.c.state == wanted.waiting.value)
    if wanted.step is not None:
        statement = statement.where(exists(has_done(wanted.step, items.c.id)))
    if wanted.before_id is not None:
        statement = statement.where(items.c.id < wanted.before_id)
    if wanted.words:
        escaped = wanted.words.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        columns = (items.c.title, items.c.url)
        statement = statement.where(
            or_(*(func.lower(c).like(f"%{escaped}%", escape="\\") for c in columns))
        )
    return statement


def _count_if(condition: Any) -> Any:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


_COUNTS = (
    select(
        item_details.c.feed_id,
        _count_if(items.c.status == int(ItemStatus.UNPROCESSED)).label("unprocessed"),
        _count_if(items.c.status == int(ItemStatus.DEFERRED)).label("deferred"),
        _count_if(items.c.status == int(ItemStatus.PENDING)).label("pending"),
        _count_if(items.c.status == int(ItemStatus.PROCESSED)).label("processed"),
        _count_if(
            (items.c.status == int(ItemStatus.PROCESSED)) & (items.c.reason == int(ItemReason.NONE))
        ).label("posted"),
        _count_if(waiting_items.c.state == WaitingState.APPROVAL.value).label("approval"),
    )
    .join(items, items.c.id == item_details.c.item_id)
    .outerjoin(waiting_items, waiting_items.c.item_id == items.c.id)
    .where(in_list(item_details.c.feed_id, "feed_ids"))
    .group_by(item_details.c.feed_id)
)
_FEEDS_OF_ITEM = (
    select(feeds.c.job_name, feeds.c.name, feed_items.c.first_seen_at)
    .join(feeds, feeds.c.id == feed_items.c.feed_id)
    .where(feed_items.c.item_id == bindparam("that_item", type_=BigInteger()))
    .order_by(feed_items.c.first_seen_at, feeds.c.id)
)
_WORKED_ON = (
    select(waiting_items.c.item_id)
    .join(job_runs, job_runs.c.id == waiting_items.c.held_by_run)
    .where(
        waiting_items.c.item_id == bindparam("that_item", type_=BigInteger()),
        job_runs.c.state == RunState.RUNNING,
    )
)
_IDS_BY_URL = select(items.c.id).where(items.c.url == bindparam("that_url", type_=items.c.url.type))


def counts(connection: Connection, feed_ids: Collection[int]) -> dict[int, ItemCounts]:
    """The counts of each feed; none for a feed without items."""
    rows = execute(connection, _COUNTS, {"feed_ids": sorted(feed_ids)}).mappings()
    return {row.pop("feed_id"): ItemCounts(**{k: int(v) for k, v in row.items()}) for row in rows}


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A feed that listed an item, and when it did first."""

    job_name: str
    name: str
    first_seen_at: datetime


def sightings(connection: Connection, item_id: int) -> list[Sighting]:
    """The feeds that listed an item, the first of them first."""
    rows = execute(connection, _FEEDS_OF_ITEM, {"that_item": item_id}).mappings()
    return [Sighting(**row) for row in rows]


def is_worked_on(connection: Connection, item_id: int) -> bool:
    """Whether a run that is RUNNING holds the item."""
    found = execute(connection, _WORKED_ON, {"that_item": item_id}).scalar_one_or_none()
    return found is not None


def id_of_url(connection: Connection, url: str) -> int | None:
    item_id: int | None = execute(connection, _IDS_BY_URL, {"that_url": url}).scalar_one_or_none()
    return item_id


class CheckedItem(NamedTuple):
    """How an item stands since it was last looked at."""

    id: int
    status: ItemStatus
    reason: ItemReason | None
    retry_count: int
    last_checked_at: datetime


def _last_of(status: ItemStatus) -> Select[Any]:
    """Served by the index on status and time, read from its end."""
    found = (
        select(
            items.c.id, items.c.status, items.c.reason, items.c.retry_count, items.c.last_checked_at
        )
        .where(items.c.status == literal_column(str(int(status))))
        .order_by(items.c.last_checked_at.desc())
        .limit(bindparam("limit", type_=Integer()))
    )
    return select(found.subquery())


_LAST_CHECKED = union_all(*map(_last_of, ItemStatus))


def last_checked(connection: Connection, *, of_each_status: int) -> list[CheckedItem]:
    """The items of each status that were looked at last."""
    rows = execute(connection, _LAST_CHECKED, {"limit": of_each_status}).all()
    return [
        CheckedItem(
            item_id, ItemStatus(status), None if reason is None else ItemReason(reason), tries, at
        )
        for item_id, status, reason, tries, at in rows
    ]
