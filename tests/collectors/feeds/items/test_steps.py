"""What is posted, and what becomes of an item whose post did not go out."""

from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.tables import WaitingState
from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.sandbox.server import StandIn

POSTED_AFTER_A_RETRY = (ItemStatus.PROCESSED, ItemReason.NONE, 1)
API_FAILED = (ItemStatus.DEFERRED, ItemReason.API_FAILED, 1)
sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def taken(_request: StandInRequest) -> Response:
    return Response(status=204)


def post_to(feeds: FeedsFixture, receiver: StandIn, **settings: Any) -> None:
    """The posts of the feed go to this webhook, without a model."""
    hook = {"type": "webhook", "url": receiver.url, "secret": "s" * 32, **settings}
    feeds.section = {
        "models": {"default": {"provider": "extractive"}},
        "accounts": {"default": hook},
    }


@sqlite_only
def test_an_item_whose_webhook_is_down_is_posted_when_it_is_up_again(
    feeds_fixture: FeedsFixture,
) -> None:
    with StandIn(taken) as receiver:
        post_to(feeds_fixture, receiver)
        port = receiver.port
    feeds_fixture.add()
    feeds_fixture.work()
    assert feeds_fixture.item() == API_FAILED
    assert [post["state"] for post in feeds_fixture.stored_posts()] == ["intended"]
    feeds_fixture.database.clock.advance(1_800)
    with StandIn(taken, port=port) as receiver:
        feeds_fixture.work()
        assert receiver.count() == 1
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY


@sqlite_only
def test_an_idempotent_webhook_that_fails_gets_the_post_again_without_a_person(
    feeds_fixture: FeedsFixture,
) -> None:
    with StandIn(taken) as receiver:
        post_to(feeds_fixture, receiver, idempotent=True)
        receiver.faults.add(StandInFault(status=503))
        feeds_fixture.add()
        feeds_fixture.work()
        assert feeds_fixture.item() == API_FAILED
        feeds_fixture.database.clock.advance(1_800)
        feeds_fixture.work()
        assert feeds_fixture.item() == POSTED_AFTER_A_RETRY
        assert len({seen.request.headers["webhook-id"] for seen in receiver.requests}) == 1


@sqlite_only
def test_a_post_that_only_a_person_can_settle_waits_for_one_under_another_account_too(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.mastodon_server.faults.add(
        StandInFault(path="*/statuses", status=503, times=None)
    )
    feeds_fixture.add()
    feeds_fixture.work()
    assert feeds_fixture.item() == API_FAILED
    feeds_fixture.database.clock.advance(1_800)
    feeds_fixture.section = {"accounts": {"other": {"type": "file", "path": "posts.jsonl"}}}
    feeds_fixture.feed = {"account": "other"}
    feeds_fixture.work()
    assert [post["state"] for post in feeds_fixture.stored_posts()] == ["unsettled"]
    assert [row["state"] for row in feeds_fixture.waiting()] == [WaitingState.APPROVAL]
    feeds_fixture.service.items.settle(["1"], was_sent=False)
    feeds_fixture.work()
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY


@pytest.mark.parametrize(
    "changed", [{"summary_prompt": "In one word."}, {"summary_characters": 40}]
)
def test_the_text_that_a_person_approved_is_posted_whatever_the_feed_asks_for_by_then(
    feeds_fixture: FeedsFixture, changed: dict[str, Any]
) -> None:
    feeds_fixture.feed = {"hold": True}
    feeds_fixture.add()
    feeds_fixture.work()
    feeds_fixture.feed |= changed
    feeds_fixture.work()
    preview = feeds_fixture.service.previews.preview("1")
    assert preview.body is not None
    feeds_fixture.service.items.approve(["1"])
    feeds_fixture.work()
    assert feeds_fixture.posts == [preview.body.text]
    assert feeds_fixture.gemini_server.count("*generateContent") == 2
