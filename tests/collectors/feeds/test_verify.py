"""Verification of feeds: what is recorded as sent is on the account, once, and the other way round."""

from typing import Any

import pytest
from sqlalchemy import text

from support.moving_clock import MovingClock
from support.verifying import faults, verified
from tsuzuki.collectors.feeds import verify as verify_module
from tsuzuki.collectors.feeds.channels import mastodon as mastodon_module
from tsuzuki.collectors.feeds.sandbox.feed_site import ArticlePage
from tsuzuki.collectors.feeds.verify import verify
from tsuzuki.model.verification import Verified
from tsuzuki.sandbox.faults import StandInFault

from .feeds_fixture import FeedsFixture

PLAIN = ArticlePage(
    body=b"The bridge was opened today. Many people came to see it, and the mayor too.",
    content_type="text/plain",
)
DAY = 86_400.0


def found(feeds_fixture: FeedsFixture, **more: Any) -> list[Verified]:
    return verified(verify, feeds_fixture.collector_context, **more)


def only(feeds_fixture: FeedsFixture) -> Verified:
    (one,) = found(feeds_fixture)
    return one


def change(feeds_fixture: FeedsFixture, statement: str, **values: Any) -> None:
    with feeds_fixture.database.write() as connection:
        connection.execute(text(statement), values)


@pytest.fixture
def posted(feeds_fixture: FeedsFixture) -> FeedsFixture:
    """Three articles that were posted."""
    feeds_fixture.feed = {"caps": {"per_run": None, "per_hour": None, "per_day": None}}
    for number in range(3):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    feeds_fixture.work()
    assert len(feeds_fixture.posts) == 3
    return feeds_fixture


def url_of(posted: FeedsFixture, post: dict[str, Any]) -> str:
    return next(str(item["url"]) for item in posted.items() if item["id"] == post["item_id"])


def remove_status(posted: FeedsFixture, remote_id: str) -> None:
    (status,) = (one for one in posted.mastodon.statuses if str(one.id) == remote_id)
    posted.mastodon.store.delete(status)


def test_where_nothing_was_posted_no_account_is_asked(feeds_fixture: FeedsFixture) -> None:
    assert found(feeds_fixture) == []
    assert feeds_fixture.mastodon_server.requests == []


def test_every_post_is_on_the_account(posted: FeedsFixture) -> None:
    one = only(posted)
    assert (one.subject, one.is_ok, one.compared, one.note) == ("default", True, 3, None)


def test_a_post_that_was_removed_from_the_account_is_named(posted: FeedsFixture) -> None:
    post = posted.stored_posts()[1]
    remove_status(posted, post["remote_id"])
    name = f"post {post['id']} ({url_of(posted, post)}) is not on the account"
    assert faults([only(posted)]) == [("unknown", name)]


def test_a_post_whose_record_is_gone_is_named(posted: FeedsFixture) -> None:
    post = posted.stored_posts()[0]
    change(posted, "DELETE FROM tsuzuki_feed_posts WHERE id = :id", id=post["id"])
    url = url_of(posted, post)
    name = f"post {post['remote_id']} on the account ({url}) is not recorded as sent"
    assert faults([only(posted)]) == [("missing", name)]


def test_an_article_that_is_on_the_account_twice_is_named(posted: FeedsFixture) -> None:
    post = posted.stored_posts()[0]
    other = posted.stored_posts()[1]
    change(
        posted,
        "UPDATE tsuzuki_feed_posts SET remote_id = :id WHERE id = :other",
        id="424242",
        other=other["id"],
    )
    one = only(posted)
    assert faults([one]) == [
        (
            "repeated",
            f"post {other['remote_id']} on the account ({url_of(posted, other)}) is a duplicate",
        ),
        ("unknown", f"post {other['id']} ({url_of(posted, other)}) is not on the account"),
    ]
    assert post["remote_id"] not in str(one.named)


def test_a_post_that_a_person_settled_is_found_by_its_link(posted: FeedsFixture) -> None:
    change(posted, "UPDATE tsuzuki_feed_posts SET remote_id = idempotency_key")
    assert only(posted).is_ok
    remove_status(posted, str(posted.mastodon.statuses[0].id))
    assert only(posted).faults == 1


def test_other_posts_on_the_account_are_a_note(posted: FeedsFixture) -> None:
    channel_posts = len(posted.posts)
    change(
        posted, "DELETE FROM tsuzuki_feed_posts WHERE id = :id", id=posted.stored_posts()[0]["id"]
    )
    change(posted, "UPDATE items SET url = url || '/elsewhere'")
    one = only(posted)
    assert (one.is_ok, one.compared, one.note) == (
        True,
        channel_posts,
        "1 other posts on the account",
    )


def test_posts_before_the_first_moment_are_not_compared(
    posted: FeedsFixture, clock: MovingClock
) -> None:
    remove_status(posted, posted.stored_posts()[0]["remote_id"])
    clock.advance(10 * DAY)
    assert found(posted, since=clock.now()) == []


def test_of_very_many_posts_the_newest_are_compared(
    posted: FeedsFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_module, "POSTS_MAX", 2)
    remove_status(posted, posted.stored_posts()[0]["remote_id"])
    one = only(posted)
    assert one.is_ok
    assert str(one.note).startswith("posts before ")


def test_the_account_is_read_page_by_page(
    posted: FeedsFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mastodon_module, "PAGE_SIZE", 2)
    monkeypatch.setattr(verify_module, "PAGE", 1)
    compared: list[int] = []
    (one,) = found(posted, advance=compared.append)
    assert (one.is_ok, compared) == (True, [1, 1, 1])


def test_an_account_that_does_not_answer_is_no_proof(posted: FeedsFixture) -> None:
    posted.mastodon_server.faults.add(StandInFault(status=503, times=None))
    one = only(posted)
    assert not one.is_ok
    assert one.problem is not None


def test_an_account_that_is_not_configured_any_more_is_a_note(posted: FeedsFixture) -> None:
    posted.section = {"accounts": {}}
    one = only(posted)
    assert one.is_ok
    assert one.note == "not compared: the account is no longer configured"


def test_the_lines_of_a_file_are_compared(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.section = {"accounts": {"default": {"type": "file", "path": "posts.jsonl"}}}
    feeds_fixture.add("One", page=PLAIN)
    feeds_fixture.work()
    assert (only(feeds_fixture).is_ok, only(feeds_fixture).compared) == (True, 1)
    (feeds_fixture.workspace / "posts.jsonl").write_text("")
    assert only(feeds_fixture).faults == 1
    (feeds_fixture.workspace / "posts.jsonl").unlink()
    assert only(feeds_fixture).faults == 1


def test_a_webhook_cannot_be_compared(posted: FeedsFixture) -> None:
    secret = "whsec_" + "c2VjcmV0" * 4
    posted.section = {
        "accounts": {
            "default": {"type": "webhook", "url": "https://hook.example/", "secret": secret}
        }
    }
    one = only(posted)
    assert one.is_ok
    assert one.note == "not compared: a webhook cannot be asked which posts have arrived"
