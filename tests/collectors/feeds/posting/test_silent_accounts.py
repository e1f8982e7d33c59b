"""An account whose server does not answer is left for the rest of the run, before more is paid for its feeds."""

from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FEED_PATH, FeedsFixture
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, ArticlePage, Feed
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

PLAIN = ArticlePage(
    body=b"The bridge was opened today. Many people came to see it, and the mayor too.",
    content_type="text/plain",
)
ARTICLES = 6
TIMEOUT = 0.3
STATUSES = "*/statuses"
pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def account(url: str) -> dict[str, Any]:
    return {"type": "mastodon", "base_url": url, "access_token": TOKEN, "timeout": TIMEOUT}


@pytest.fixture
def impatient(feeds_fixture: FeedsFixture) -> FeedsFixture:
    """Its account gives up soon, the limits of the server are known, and some articles wait."""
    feeds_fixture.section = {"accounts": {"default": account(feeds_fixture.mastodon_server.url)}}
    feeds_fixture.feed = {"caps": {"per_run": None, "per_hour": None, "per_day": None}}
    feeds_fixture.add("Article 0", page=PLAIN)
    feeds_fixture.work()
    for number in range(1, ARTICLES + 1):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    return feeds_fixture


def paid(fixture: FeedsFixture) -> int:
    """How many articles the model was paid for, after the first one."""
    return (fixture.gemini.paid.count() - 2) // 2


SILENCES = {
    "hangs on everything": [StandInFault(kind=StandInFaultKind.HANG, times=None)],
    "hangs on posts": [
        StandInFault(kind=StandInFaultKind.HANG, path=STATUSES, method="POST", times=None)
    ],
    "resets": [StandInFault(kind=StandInFaultKind.RESET, path=STATUSES, method="POST", times=None)],
    "500": [StandInFault(path=STATUSES, method="POST", status=500, times=None)],
    "503 on everything": [StandInFault(status=503, times=None)],
}


@pytest.mark.parametrize("faults", SILENCES.values(), ids=SILENCES)
def test_two_requests_in_a_row_without_an_answer_end_the_work_on_the_account(
    impatient: FeedsFixture, faults: list[StandInFault]
) -> None:
    for fault in faults:
        impatient.mastodon_server.faults.add(fault)
    result = impatient.work()["process"]
    assert 1 <= result["drawn"] <= 2
    assert paid(impatient) == result["drawn"]
    assert result["closed"]["news"]["until"] is None
    assert "did not respond" in result["closed"]["news"]["why"]
    assert impatient.last is not None
    assert sum("did not respond 2 times" in line for line in impatient.last.log) == 1
    untouched = [row for row in impatient.items() if row["status"] == ItemStatus.UNPROCESSED]
    assert len(untouched) == ARTICLES - result["drawn"]
    assert {row["retry_count"] for row in untouched} == {0}


def test_a_server_that_refuses_connections_surely_took_nothing(impatient: FeedsFixture) -> None:
    with StandIn(impatient.mastodon) as gone:
        impatient.section["accounts"]["default"]["base_url"] = gone.url
        impatient.database.clock.advance(1)
        impatient.work(arguments={"items": 1})
    result = impatient.work()["process"]
    assert (result["drawn"], paid(impatient)) == (2, 3)
    assert "did not respond" in result["closed"]["news"]["why"]
    states = [post["state"] for post in impatient.stored_posts()]
    assert states == ["sent", "sent", "intended", "intended"]


def test_nothing_is_paid_for_while_a_server_hangs_that_was_never_asked(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.section = {"accounts": {"default": account(feeds_fixture.mastodon_server.url)}}
    feeds_fixture.mastodon_server.faults.add(StandInFault(kind=StandInFaultKind.HANG, times=None))
    for number in range(4):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    result = feeds_fixture.work()["process"]
    assert result["deferred"] == {"api_failed": 2}
    assert feeds_fixture.gemini.paid.count() == 0


def test_limits_that_are_known_are_asked_for_once_in_a_run(impatient: FeedsFixture) -> None:
    impatient.database.clock.advance(86_401)
    impatient.mastodon_server.faults.add(StandInFault(path="*/instance*", status=503, times=None))
    impatient.mastodon_server.forget_requests()
    assert impatient.work()["process"]["posted"] == ARTICLES
    assert impatient.mastodon_server.count("*/instance*") == 1


def test_an_answer_in_between_keeps_the_account(impatient: FeedsFixture) -> None:
    for skip in (0, 2, 4):
        fault = StandInFault(path=STATUSES, method="POST", status=503, skip=skip, times=1)
        impatient.mastodon_server.faults.add(fault)
    result = impatient.work()["process"]
    assert result["drawn"] == ARTICLES
    assert result["closed"] == {}


def test_other_accounts_go_on(impatient: FeedsFixture) -> None:
    impatient.section["accounts"]["archive"] = {"type": "file", "path": "posts.jsonl"}
    impatient.site.add_feed(Feed(path="/other.xml", title="Other"))
    for number in range(3):
        impatient.site.add_article("/other.xml", Article(title=f"Other {number}", page=PLAIN))
    impatient.mastodon_server.faults.add(StandInFault(kind=StandInFaultKind.HANG, times=None))
    result = impatient.work(
        news={"url": FEED_PATH, "backfill": "all", **impatient.feed},
        other={"url": "/other.xml", "backfill": "all", "account": "archive"},
    )["process"]
    assert [*result["closed"]] == ["news"]
    assert result["posted"] == 3
    lines = (impatient.workspace / "posts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert impatient.items()[0]["reason"] == ItemReason.NONE


def test_a_later_run_posts_what_was_left(impatient: FeedsFixture) -> None:
    fault = StandInFault(path=STATUSES, method="POST", status=503, times=None)
    impatient.mastodon_server.faults.add(fault)
    impatient.work()
    impatient.mastodon_server.faults.clear()
    for _ in range(3):
        impatient.database.clock.advance(3_600)
        impatient.work()
    assert len(impatient.posts) == len(set(impatient.posts)) == ARTICLES + 1
    assert {row["status"] for row in impatient.items()} == {ItemStatus.PROCESSED}
    assert paid(impatient) == ARTICLES
