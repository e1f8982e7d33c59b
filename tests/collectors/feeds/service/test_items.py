"""What a person decides about an item, and what the next run makes of it."""

from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.sandbox.faults import StandInFault

GIVEN_UP = (ItemStatus.PROCESSED, ItemReason.RETRY_LIMIT_EXCEEDED, 1)


@pytest.mark.parametrize("feed", [{}, {"hold": True}], ids=["at once", "held"])
def test_a_refused_post_of_an_item_that_was_given_up_is_sent_again_when_a_person_says_so(
    feeds_fixture: FeedsFixture, feed: dict[str, Any]
) -> None:
    feeds_fixture.options = {"retry_limit": 0}
    feeds_fixture.feed = feed
    feeds_fixture.mastodon_server.faults.add(
        StandInFault(path="*/statuses", method="POST", status=422)
    )
    feeds_fixture.add()
    feeds_fixture.work()
    if feed:
        feeds_fixture.service.items.approve(["1"])
        feeds_fixture.work()
    assert feeds_fixture.item() == GIVEN_UP
    (view,) = feeds_fixture.service.items.settle(["1"], was_sent=False)
    assert view.item.state.status is ItemStatus.UNPROCESSED
    feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.PROCESSED, ItemReason.NONE, 0)
    assert len(feeds_fixture.posts) == 1
    assert feeds_fixture.gemini.paid.count() == 2
