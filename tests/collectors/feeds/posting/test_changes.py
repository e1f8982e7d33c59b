"""A post whose article changes is edited or replied to: each content once, whatever breaks."""

from itertools import count

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from support.observed_run_io import Killed, kill_at
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, ArticlePage
from tsuzuki.collectors.feeds.sandbox.gemini import GeminiCase
from tsuzuki.collectors.feeds.sandbox.mastodon import WriteCase
from tsuzuki.sandbox.faults import StandInFault

POSTED = (ItemStatus.PROCESSED, ItemReason.NONE, 0)
sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def edit(fixture: FeedsFixture, article: Article, text: str) -> None:
    """Another text, in the feed and on the page."""
    fixture.database.clock.advance(60)
    fixture.site.edit_article(article, summary=text, page=plain(text))


def plain(text: str) -> ArticlePage:
    text += " Many people came to see it, and the mayor of the town was there too."
    return ArticlePage(body=text.encode(), content_type="text/plain")


def posted(fixture: FeedsFixture, on_change: str) -> Article:
    """An article that is posted."""
    fixture.feed = {"on_change": on_change}
    article = fixture.add(summary="First.", page=plain("The bridge is planned."))
    fixture.work()
    assert fixture.item() == POSTED
    return article


def test_an_edited_article_edits_its_post_once_for_each_content(
    feeds_fixture: FeedsFixture,
) -> None:
    article = posted(feeds_fixture, "edit")
    for number in range(1, 4):
        edit(feeds_fixture, article, f"The bridge is built, part {number}.")
        assert feeds_fixture.work()["process"]["changes"] == 1
        assert feeds_fixture.work()["process"]["changes"] == 0
        (post,) = feeds_fixture.posts
        assert f"part {number}." in post
        assert feeds_fixture.gemini.paid.count() == feeds_fixture.paid_steps() == 2 + number
    assert len(feeds_fixture.mastodon.statuses[0].versions) == 4
    assert feeds_fixture.item() == POSTED
    assert feeds_fixture.waiting() == []


@sqlite_only
def test_an_edited_article_gets_a_reply_once_for_each_content(feeds_fixture: FeedsFixture) -> None:
    article = posted(feeds_fixture, "reply")
    edit(feeds_fixture, article, "The bridge is built.")
    for _ in range(2):
        feeds_fixture.work()
    first, reply = feeds_fixture.mastodon.statuses
    assert reply.in_reply_to_id == first.id
    assert "The bridge is built." in reply.text
    assert "The bridge is planned." in first.text


@sqlite_only
@pytest.mark.parametrize("feed", [{"on_change": "ignore"}, {"on_change": "edit", "hold": True}])
def test_a_feed_that_ignores_changes_or_holds_its_posts_tells_none(
    feeds_fixture: FeedsFixture, feed: dict[str, object]
) -> None:
    article = posted(feeds_fixture, "ignore")
    feeds_fixture.feed = feed
    edit(feeds_fixture, article, "The bridge is built.")
    feeds_fixture.work()
    assert len(feeds_fixture.mastodon.statuses[0].versions) == 1
    assert feeds_fixture.gemini.paid.count() == 2


@sqlite_only
@pytest.mark.parametrize("kind", ["edit", "reply"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_commit_a_change_is_told_once_and_paid_for_once(
    feeds_fixture: FeedsFixture, kind: str, moment: str
) -> None:
    article = posted(feeds_fixture, kind)
    lost = 0
    for told, number in enumerate(count(1), 1):
        edit(feeds_fixture, article, f"The bridge is built, part {number}.")
        try:
            feeds_fixture.start().work(**{moment: kill_at(number)})
        except Killed:
            lost = feeds_fixture.gemini.paid.count() - feeds_fixture.paid_steps()
            for seconds in (60, 60, 300):  # one that is not there is looked for twice
                feeds_fixture.database.clock.advance(seconds)
                feeds_fixture.work()
        else:
            break  # it had fewer commits
        finally:
            statuses = feeds_fixture.mastodon.statuses
            texts = (
                [one.text for one in statuses[0].versions]
                if kind == "edit"
                else [one.text for one in statuses]
            )
            assert len(texts) == told + 1, f"killed {moment} commit {number}"
            assert f"part {number}." in texts[-1]
            assert feeds_fixture.paid_steps() == 2 + told
            assert feeds_fixture.gemini.paid.count() == 2 + told + lost
            assert feeds_fixture.item() == POSTED
    assert number > 8


@sqlite_only
@pytest.mark.parametrize("kind", ["edit", "reply"])
def test_a_change_that_surely_did_not_arrive_is_sent_by_the_next_run(
    feeds_fixture: FeedsFixture, kind: str
) -> None:
    article = posted(feeds_fixture, kind)
    edit(feeds_fixture, article, "The bridge is built.")
    cases = (
        feeds_fixture.mastodon.edit_cases if kind == "edit" else feeds_fixture.mastodon.post_cases
    )
    cases.add(WriteCase.TOO_MANY_REQUESTS)
    assert feeds_fixture.work()["process"]["changes"] == 0
    feeds_fixture.database.clock.advance(4 * 3_600)
    assert feeds_fixture.work()["process"]["changes"] == 1
    assert feeds_fixture.gemini.paid.count() == feeds_fixture.paid_steps() == 3
    assert feeds_fixture.item() == POSTED


@sqlite_only
def test_a_page_that_cannot_be_had_is_tried_again_after_a_pause_and_given_up_in_the_end(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.options = {"retry_limit": 1}
    article = posted(feeds_fixture, "edit")
    edit(feeds_fixture, article, "The bridge is built.")
    feeds_fixture.server.faults.add(StandInFault(path="/articles/*", status=404, times=None))
    feeds_fixture.server.forget_requests()
    for pause in (0, 1_000, 2_000, 86_400, 86_400):
        feeds_fixture.database.clock.advance(pause)
        feeds_fixture.work()
    assert feeds_fixture.server.count("/articles/*") == 2
    assert feeds_fixture.item() == POSTED
    assert feeds_fixture.gemini.paid.count() == 2


@sqlite_only
@pytest.mark.parametrize("case", [GeminiCase.SAFETY, GeminiCase.DAILY_QUOTA])
def test_a_model_that_gives_no_summary_of_a_change_leaves_the_item_alone(
    feeds_fixture: FeedsFixture, case: GeminiCase
) -> None:
    article = posted(feeds_fixture, "edit")
    edit(feeds_fixture, article, "The bridge is built.")
    feeds_fixture.gemini.cases.add(case)
    feeds_fixture.work()
    feeds_fixture.work()
    assert feeds_fixture.item() == POSTED
    assert feeds_fixture.gemini_server.count("*generateContent") == 3
    feeds_fixture.database.clock.advance(86_400)
    feeds_fixture.work()
    is_told = len(feeds_fixture.mastodon.statuses[0].versions) == 2
    assert is_told is (case is GeminiCase.DAILY_QUOTA), "what was refused is not asked again"


@sqlite_only
def test_a_budget_stops_the_summary_of_a_change_before_the_request(
    feeds_fixture: FeedsFixture,
) -> None:
    article = posted(feeds_fixture, "edit")
    feeds_fixture.feed |= {"budget": {"requests_per_day": 2}}
    edit(feeds_fixture, article, "The bridge is built.")
    result = feeds_fixture.work()["process"]
    assert "requests_per_day" in result["closed"]["news"]["why"]
    assert feeds_fixture.gemini.paid.count() == 2
    feeds_fixture.database.clock.advance(86_400)
    feeds_fixture.work()
    assert len(feeds_fixture.mastodon.statuses[0].versions) == 2


@sqlite_only
def test_a_post_of_an_account_that_the_feed_had_before_is_left_as_it_is(
    feeds_fixture: FeedsFixture,
) -> None:
    article = posted(feeds_fixture, "edit")
    feeds_fixture.section = {"accounts": {"other": {"type": "file", "path": "posts.jsonl"}}}
    feeds_fixture.feed |= {"account": "other"}
    edit(feeds_fixture, article, "The bridge is built.")
    assert feeds_fixture.work()["process"]["changes"] == 0
    assert feeds_fixture.gemini.paid.count() == 2


@sqlite_only
def test_a_pause_asked_for_while_the_limits_are_read_does_not_fail_the_run(
    feeds_fixture: FeedsFixture,
) -> None:
    article = posted(feeds_fixture, "edit")
    feeds_fixture.database.clock.advance(86_400 + 1)
    edit(feeds_fixture, article, "The bridge is built.")
    feeds_fixture.mastodon_server.faults.add(StandInFault(path="*/instance*", status=429))
    result = feeds_fixture.work()["process"]
    assert result["changes"] == 0
    assert "429" in result["closed"]["news"]["why"]
    feeds_fixture.database.clock.advance(3_601)
    assert feeds_fixture.work()["process"]["changes"] == 1
    assert feeds_fixture.gemini.paid.count() == 3


@sqlite_only
def test_a_change_that_is_too_long_for_any_day_does_not_keep_others_back(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.options = {"retry_limit": 1}
    long = posted(feeds_fixture, "edit")
    short = feeds_fixture.add("A school opens", summary="First.", page=plain("It is planned."))
    feeds_fixture.work()
    feeds_fixture.feed |= {"budget": {"tokens_per_day": 5_000}}
    feeds_fixture.database.clock.advance(86_400)
    edit(feeds_fixture, long, "The bridge is built. " * 2_000)
    edit(feeds_fixture, short, "The school is built.")
    assert feeds_fixture.work()["process"]["changes"] == 1
    feeds_fixture.server.forget_requests()
    for _ in range(4):
        feeds_fixture.database.clock.advance(86_400)
        assert feeds_fixture.work()["process"]["closed"] == {}
    assert feeds_fixture.server.count("/articles/*") == 1, "it is given up in the end"
