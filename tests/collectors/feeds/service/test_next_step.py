"""What happens next with an item, and what keeps it waiting, as a person is told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from support.moving_clock import MovingClock
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.queries import items
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, ArticlePage
from tsuzuki.collectors.feeds.service import FeedsService
from tsuzuki.config import Configuration
from tsuzuki.model.errors import ConfigurationError, Conflict
from tsuzuki.model.states import RunState
from tsuzuki.sandbox.exchange import Response
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.runs import Runs
from tsuzuki.wiring.collector import ServiceContext

EXTRACTIVE = {"models": {"default": {"provider": "extractive"}}}


def no_file() -> Configuration:
    """Every job is in the database only."""
    return Configuration(
        workspace=Path(),
        file=None,
        database_url="",
        redis_url=None,
        timezone="UTC",
        log_archive=None,
        jobs=(),
    )


def service(feeds: FeedsFixture, **context: Any) -> FeedsService:
    base, database = feeds.collector_context, feeds.database
    said = {"workspace": base.workspace, "read_section": base.read_section, **context}
    return FeedsService.of(
        ServiceContext(
            database=database,
            **said,
            actor="test",
            jobs=Jobs(database=database, reload=no_file, kinds={}, actor="test"),
            runs=Runs(database=database, actor="test"),
            liveness=Liveness(database=database),
        )
    )


def told(feeds: FeedsFixture, item: int = 1, **context: Any) -> str:
    return "\n".join(service(feeds, **context).explanations.explain(str(item)).next)


def test_a_budget_without_room_is_told_with_its_end(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.section["budget"] = {"requests_per_day": 1}
    feeds_fixture.add()
    feeds_fixture.work()
    said = told(feeds_fixture)
    assert "Not enough budget of all feeds for the request: `requests_per_day`" in said
    assert "1 of 1 used; capacity is available again at " in said


def test_a_cap_is_told_with_its_end(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.section |= EXTRACTIVE
    feeds_fixture.feed["caps"] = {"per_hour": 1}
    feeds_fixture.add("One")
    feeds_fixture.add("Two")
    feeds_fixture.work()
    said = told(feeds_fixture, 1) + told(feeds_fixture, 2)
    assert "Posted." in said
    assert "the next post is possible at" in said


def test_an_item_of_a_run_that_died_is_not_worked_on(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.section |= EXTRACTIVE
    feeds_fixture.add()
    feeds_fixture.work(arguments={"process": False})
    run = feeds_fixture.start()
    with run.context.transaction() as connection:
        assert items.draw(connection, feed_ids=[1], run_id=run.context.id) is not None
    assert "A run is processing this item." in told(feeds_fixture)
    run.end(RunState.FAILED)
    assert "the next run will resume it" in told(feeds_fixture)


def test_a_section_that_cannot_be_read_is_told(feeds_fixture: FeedsFixture) -> None:
    def unreadable(**_only: Any) -> FeedsSection:
        raise ConfigurationError("environment variable KEY is not set", code="variable_missing")

    feeds_fixture.add()
    feeds_fixture.work(arguments={"process": False})
    said = told(feeds_fixture, read_section=unreadable)
    assert "A run would fail: environment variable KEY is not set." in said


def test_a_summary_that_cannot_be_posted_is_told_with_the_cause(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.feed["language"] = "ja"
    feeds_fixture.add()
    feeds_fixture.work()
    assert "The summary cannot be posted: the summary is not in the requested language" in told(
        feeds_fixture
    )
    preview = service(feeds_fixture).previews.preview("1")
    assert preview.body is None
    assert "language" in str(preview.problem)


@contextmanager
def webhook_receiver(fixture: FeedsFixture) -> Iterator[StandIn]:
    """The posts of the feed go there, without a model."""
    with StandIn(lambda _request: Response(status=204)) as receiver:
        hook = {"type": "webhook", "url": receiver.url + "/hook", "secret": "s" * 32}
        fixture.section |= {**EXTRACTIVE, "accounts": {"default": hook}}
        yield receiver


@pytest.mark.parametrize("was_sent", [True, False])
def test_a_person_settles_a_post_whose_outcome_is_not_known(
    feeds_fixture: FeedsFixture, *, was_sent: bool
) -> None:
    with webhook_receiver(feeds_fixture) as receiver:
        receiver.faults.add(StandInFault(kind=StandInFaultKind.RESET))
        feeds_fixture.add()
        feeds_fixture.work()
        decisions = service(feeds_fixture).items
        assert "feeds approve 1 --was-sent\ntsuzuki feeds approve 1 --send-again" in told(
            feeds_fixture
        )
        with pytest.raises(Conflict) as refused:
            decisions.approve(["1"])
        assert refused.value.specific_code == "post_unsettled"
        decisions.settle(["1"], was_sent=was_sent, dry_run=True)
        (view,) = decisions.settle(["1"], was_sent=was_sent)
        assert view.outcome == ("posted" if was_sent else None)
        feeds_fixture.work()
        assert "Posted." in told(feeds_fixture)
        assert receiver.count() == (1 if was_sent else 2)
        with pytest.raises(Conflict, match="no post to resolve"):
            decisions.settle(["1"], was_sent=was_sent, dry_run=True)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("on_change", ["edit", "reply"])
@pytest.mark.parametrize("was_sent", [True, False])
def test_a_person_settles_a_change_whose_outcome_is_not_known(
    feeds_fixture: FeedsFixture, on_change: str, *, was_sent: bool
) -> None:
    with webhook_receiver(feeds_fixture) as receiver:
        feeds_fixture.feed = {"on_change": on_change}
        article = feeds_fixture.add()
        feeds_fixture.work()
        change_article(feeds_fixture, article, "second")
        receiver.faults.add(StandInFault(kind=StandInFaultKind.RESET))
        feeds_fixture.work()
        assert f"Whether the {on_change} arrived is unknown" in told(feeds_fixture)
        assert "feeds approve 1 --was-sent\ntsuzuki feeds approve 1 --send-again" in told(
            feeds_fixture
        )
        decisions = service(feeds_fixture).items
        decisions.settle(["1"], was_sent=was_sent, dry_run=True)
        (view,) = decisions.settle(["1"], was_sent=was_sent)
        assert view.outcome == "posted"
        feeds_fixture.work()
        assert "Nothing left to do" in told(feeds_fixture)
        assert receiver.count() == (2 if was_sent else 3)
        change_article(feeds_fixture, article, "third")
        feeds_fixture.work()
        assert receiver.count() == (3 if was_sent else 4), "the next change is told"
        with pytest.raises(Conflict, match="no post to resolve"):
            decisions.settle(["1"], was_sent=was_sent)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_change_names_the_post_that_a_person_said_was_sent(feeds_fixture: FeedsFixture) -> None:
    with webhook_receiver(feeds_fixture) as receiver:
        feeds_fixture.feed = {"on_change": "edit"}
        article = feeds_fixture.add()
        receiver.faults.add(StandInFault(kind=StandInFaultKind.RESET))
        feeds_fixture.work()
        service(feeds_fixture).items.settle(["1"], was_sent=True)
        change_article(feeds_fixture, article, "second")
        feeds_fixture.work()
    post, edit = (json.loads(seen.request.body)["data"] for seen in receiver.requests)
    assert edit["target_id"] == post["id"]


def change_article(fixture: FeedsFixture, article: Article, word: str) -> None:
    fixture.database.clock.advance(60)
    text = f"The {word} text of it. Many people came to see it, and the mayor was there too."
    page = ArticlePage(body=text.encode(), content_type="text/plain")
    fixture.site.edit_article(article, summary=word, page=page)


def test_a_feed_is_silent_by_its_own_rhythm(
    feeds_fixture: FeedsFixture, clock: MovingClock
) -> None:
    for number in range(6):
        feeds_fixture.add(f"Article {number}")
    feeds_fixture.work(arguments={"process": False})
    definitions = service(feeds_fixture).definitions
    clock.advance(86_400 * 60)
    (view,) = definitions.find(counted=True)
    assert view.as_dict()["health"] == "silent"
    assert view.as_dict()["health_since"] is not None
