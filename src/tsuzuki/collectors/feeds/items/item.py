"""The life of a feed item: found, judged worth posting or put off, and at last processed.

    UNPROCESSED ─┬─ screened_valuable ─▶ PENDING ── posted ─▶ PROCESSED
    DEFERRED ────┘
    any of these three ── deferred ─▶ DEFERRED, or PROCESSED when put off too often

Nothing leaves PROCESSED by itself; a person may requeue what was not posted. The numbers are the ones kept in the
database.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from tsuzuki.model.errors import Conflict


class ItemStatus(IntEnum):
    """Where an item is in its life."""

    UNPROCESSED = 0
    """Found in a feed and not looked at yet."""

    DEFERRED = 1
    """Looked at and put off, for the reason given; it will be looked at again."""

    PENDING = 2
    """Worth posting; waits to be summarised and posted."""

    PROCESSED = 3
    """Done with, one way or the other; kept so that it is not found anew."""


class ItemReason(IntEnum):
    """Why an item was put off or is done with."""

    NONE = 0
    NOT_VALUABLE = 1
    PAGE_NOT_READY = 2
    DOWNLOAD_FAILED = 3
    FILE_TOO_LARGE = 4
    API_FAILED = 5
    RETRY_LIMIT_EXCEEDED = 6


@dataclass(frozen=True, kw_only=True)
class ItemState:
    """`retry_count` is how often the item has been put off since it was found or requeued."""

    status: ItemStatus = ItemStatus.UNPROCESSED
    reason: ItemReason | None = None
    retry_count: int = 0


def screened_valuable(item: ItemState) -> ItemState:
    """The item is worth posting."""
    _require_status(item, {ItemStatus.UNPROCESSED, ItemStatus.DEFERRED}, "screened")
    return replace(item, status=ItemStatus.PENDING, reason=None)


def posted(item: ItemState) -> ItemState:
    """The item has been posted."""
    _require_status(item, {ItemStatus.PENDING}, "posted")
    return replace(item, status=ItemStatus.PROCESSED, reason=ItemReason.NONE)


def found_posted(item: ItemState) -> ItemState:
    """The item was given up, and its post turns out to have arrived."""
    _require_status(item, {ItemStatus.PROCESSED}, "posted")
    return replace(item, reason=ItemReason.NONE)


def deferred(item: ItemState, reason: ItemReason, retry_limit: int) -> ItemState:
    """The item is put off once more; when that is more often than `retry_limit`, given up."""
    _require_status(item, set(ItemStatus) - {ItemStatus.PROCESSED}, "deferred")
    retry_count = item.retry_count + 1
    if retry_count > retry_limit:
        return ItemState(
            status=ItemStatus.PROCESSED,
            reason=ItemReason.RETRY_LIMIT_EXCEEDED,
            retry_count=retry_count,
        )
    return ItemState(status=ItemStatus.DEFERRED, reason=reason, retry_count=retry_count)


def requeued(item: ItemState) -> ItemState:
    """A person wants a processed item worked on again, from the start. Never one that was posted."""
    _require_status(item, {ItemStatus.PROCESSED}, "requeued")
    if item.reason is ItemReason.NONE:
        raise Conflict("a posted item cannot be requeued", code="item_posted")
    return ItemState()


def _require_status(item: ItemState, allowed: set[ItemStatus], action: str) -> None:
    if item.status not in allowed:
        raise Conflict(f"item in state {item.status.name} cannot be {action}")
