"""How a feed fares, as its row and its newest items tell."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from collectors.feeds.fetching_fixture import JOB, Fetching
from support.moving_clock import NOON, MovingClock
from tsuzuki.collectors.feeds.fetching.health import FeedHealth, HealthState, health_of
from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed, newest_dates, of_job
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedDelivery, FeedSite

DAY = timedelta(days=1)
OPTIONS = FeedOptions.model_validate({"url": "https://a.example/feed"})
WEEKLY = [NOON - timedelta(weeks=number) for number in range(1, 10)]
EMPTY: dict[str, object] = dict.fromkeys(StoredFeed.__dataclass_fields__)
ROW = StoredFeed(
    **{  # type: ignore[arg-type] # a row of whatever columns there are
        **EMPTY,
        "id": 1,
        "job_name": JOB,
        "name": "news",
        "url": OPTIONS.url,
        "is_conditional": True,
        "failures": 0,
    }
)
GOOD = replace(ROW, first_good_at=NOON - 100 * DAY, good_at=NOON, new_at=NOON - 20 * DAY)


@pytest.mark.parametrize(
    ("feed", "dates", "state"),
    [
        (ROW, [], HealthState.NEW),
        (GOOD, [], HealthState.GOOD),
        (GOOD, WEEKLY, HealthState.GOOD),
        (replace(GOOD, new_at=NOON - 22 * DAY), WEEKLY, HealthState.SILENT),
        (replace(GOOD, new_at=NOON - 22 * DAY), WEEKLY[:4], HealthState.GOOD),
        (replace(GOOD, failures=2, failing_since=NOON - DAY), WEEKLY, HealthState.FAILING),
        (replace(GOOD, failures=1, failing_since=NOON, ended_at=NOON), [], HealthState.ENDED),
        (replace(GOOD, removed_at=NOON), [], HealthState.REMOVED),
    ],
)
def test_the_health_of_a_feed(feed: StoredFeed, dates: list[datetime], state: HealthState) -> None:
    assert health_of(feed, OPTIONS, dates, now=NOON).state is state


def test_the_options_say_what_silence_is() -> None:
    options = FeedOptions.model_validate({"url": OPTIONS.url, "silent_after": 86_400 * 10})
    health = health_of(GOOD, options, WEEKLY, now=NOON)
    assert health == FeedHealth(
        state=HealthState.SILENT, since=NOON - 20 * DAY, silent_after=10 * DAY
    )


def test_a_feed_that_was_silent_long_before_its_first_fetch_is_silent(
    fetching: Fetching, site: FeedSite, clock: MovingClock
) -> None:
    old = [Article(title=f"T{n}", published=NOON - (100 + n) * DAY) for n in range(6)]
    site.add_feed(Feed(path="/news.xml"), old)
    fetching.fetch(news="/news.xml")
    assert health(fetching, clock).state is HealthState.SILENT
    site.add_article("/news.xml", Article(title="Back", published=NOON))
    fetching.fetch(news="/news.xml")
    assert health(fetching, clock).state is HealthState.GOOD
    site.edit_feed("/news.xml", delivery=FeedDelivery(status=500))
    clock.advance(86_400)
    fetching.fetch(news="/news.xml")
    assert health(fetching, clock).state is HealthState.FAILING


def health(fetching: Fetching, clock: MovingClock) -> FeedHealth:
    with fetching.database.read() as connection:
        feed = of_job(connection, JOB)["news"]
        dates = newest_dates(connection, feed.id)
    return health_of(feed, OPTIONS, dates, now=clock.now())
