"""The life of a feed item."""

import pytest

from tsuzuki.collectors.feeds.items.item import (
    ItemReason,
    ItemState,
    ItemStatus,
    deferred,
    posted,
    screened_valuable,
)
from tsuzuki.model.errors import Conflict

NEW = ItemState()
PENDING = ItemState(status=ItemStatus.PENDING, retry_count=1)
PUT_OFF = ItemState(status=ItemStatus.DEFERRED, reason=ItemReason.PAGE_NOT_READY, retry_count=1)
DONE = ItemState(status=ItemStatus.PROCESSED, reason=ItemReason.NONE)


def test_a_new_item_is_unprocessed_without_reason_or_retries() -> None:
    assert (NEW.status, NEW.reason, NEW.retry_count) == (ItemStatus.UNPROCESSED, None, 0)


def test_a_valuable_item_waits_to_be_posted_and_keeps_its_count() -> None:
    assert screened_valuable(NEW) == ItemState(status=ItemStatus.PENDING)
    assert screened_valuable(PUT_OFF) == PENDING


def test_a_posted_item_is_done_without_a_reason() -> None:
    assert posted(PENDING) == ItemState(
        status=ItemStatus.PROCESSED, reason=ItemReason.NONE, retry_count=1
    )


@pytest.mark.parametrize("item", [NEW, PENDING, PUT_OFF])
def test_an_item_put_off_keeps_the_reason_and_counts(item: ItemState) -> None:
    assert deferred(item, ItemReason.API_FAILED, retry_limit=3) == ItemState(
        status=ItemStatus.DEFERRED,
        reason=ItemReason.API_FAILED,
        retry_count=item.retry_count + 1,
    )


def test_an_item_put_off_more_often_than_allowed_is_given_up() -> None:
    item = NEW
    for _ in range(2):
        item = deferred(item, ItemReason.DOWNLOAD_FAILED, retry_limit=2)
        assert item.status is ItemStatus.DEFERRED
    assert deferred(item, ItemReason.DOWNLOAD_FAILED, retry_limit=2) == ItemState(
        status=ItemStatus.PROCESSED, reason=ItemReason.RETRY_LIMIT_EXCEEDED, retry_count=3
    )


def test_nothing_leaves_processed() -> None:
    with pytest.raises(Conflict, match="PROCESSED cannot be screened"):
        screened_valuable(DONE)
    with pytest.raises(Conflict, match="PROCESSED cannot be posted"):
        posted(DONE)
    with pytest.raises(Conflict, match="PROCESSED cannot be deferred"):
        deferred(DONE, ItemReason.API_FAILED, retry_limit=9)


@pytest.mark.parametrize("item", [NEW, PUT_OFF])
def test_only_a_pending_item_can_be_posted(item: ItemState) -> None:
    with pytest.raises(Conflict, match="cannot be posted"):
        posted(item)


def test_a_pending_item_is_not_screened_again() -> None:
    with pytest.raises(Conflict, match="PENDING cannot be screened"):
        screened_valuable(PENDING)


def test_the_stored_numbers_are_stable() -> None:
    assert [(status.name, status.value) for status in ItemStatus] == [
        ("UNPROCESSED", 0),
        ("DEFERRED", 1),
        ("PENDING", 2),
        ("PROCESSED", 3),
    ]
    assert [int(reason) for reason in ItemReason] == list(range(7))
