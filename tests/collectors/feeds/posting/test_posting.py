"""A post that surely did not arrive goes where its feed posts now."""

import json

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from tsuzuki.collectors.feeds.channels.protocol import AccountStopped
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN

POSTED = (ItemStatus.PROCESSED, ItemReason.NONE, 0)
FILE = {"type": "file", "path": "posts.jsonl"}


@pytest.mark.parametrize("is_kept", [True, False], ids=["account kept", "account removed"])
def test_a_post_of_a_stopped_account_goes_to_the_account_that_its_feed_has_now(
    feeds_fixture: FeedsFixture, *, is_kept: bool
) -> None:
    feeds_fixture.mastodon.account.suspended = True
    feeds_fixture.add()
    with pytest.raises(AccountStopped):
        feeds_fixture.work()
    stopped = {"type": "mastodon", "base_url": feeds_fixture.mastodon_server.url}
    kept = {"default": {**stopped, "access_token": TOKEN}} if is_kept else {}
    feeds_fixture.section = {"accounts": {**kept, "other": FILE}}
    feeds_fixture.feed = {"account": "other"}
    feeds_fixture.work()
    assert feeds_fixture.item() == POSTED
    (post,) = feeds_fixture.stored_posts()
    assert (post["state"], post["account"]) == ("sent", "other")
    (line,) = (feeds_fixture.workspace / "posts.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["id"] == post["idempotency_key"]
    assert feeds_fixture.posts == []
    assert feeds_fixture.gemini.paid.count() == 2
