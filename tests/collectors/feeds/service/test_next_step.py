"""What happens next with an item, and what keeps it waiting, as a person is told."""

from pathlib import Path
from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from support.moving_clock import MovingClock
from tsuzuki.collectors.collector import ServiceContext
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.queries import items
from tsuzuki.collectors.feeds.service import FeedsService
from tsuzuki.config import Configuration
from tsuzuki.model.errors import ConfigurationError, Conflict
from tsuzuki.model.states import RunState
from tsuzuki.sandbox.exchange import Response
from tsuzuki.sandbox.faults import Fault, FaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.runs import Runs

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
    assert "The budget of all feeds leaves no room for the request: `requests_per_day`" in said
    assert "1 of 1 used; there is room at " in said


def test_a_cap_is_told_with_its_end(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.section |= EXTRACTIVE
    feeds_fixture.feed["caps"] = {"per_hour": 1}
    feeds_fixture.add("One")
    feeds_fixture.add("Two")
    feeds_fixture.work()
    said = told(feeds_fixture, 1) + told(feeds_fixture, 2)
    assert "It was posted." in said
    assert "caps allow; the next one may go out at" in said


def test_an_item_of_a_run_that_died_is_not_worked_on(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.section |= EXTRACTIVE
    feeds_fixture.add()
    feeds_fixture.work(arguments={"process": False})
    run = feeds_fixture.start()
    with run.context.transaction() as connection:
        assert items.draw(connection, feed_ids=[1], run_id=run.context.id) is not None
    assert "A run works on it now." in told(feeds_fixture)
    run.end(RunState.FAILED)
    assert "has ended before it was done; the next one goes on with it" in told(feeds_fixture)


def test_a_section_that_cannot_be_read_is_told(feeds_fixture: FeedsFixture) -> None:
    def unreadable(**_only: Any) -> FeedsSection:
        raise ConfigurationError("the environment variable KEY is not set", code="variable_missing")

    feeds_fixture.add()
    feeds_fixture.work(arguments={"process": False})
    said = told(feeds_fixture, read_section=unreadable)
    assert "A run would fail: the environment variable KEY is not set." in said


def test_a_summary_that_cannot_be_posted_is_told_with_the_cause(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.feed["language"] = "ja"
    feeds_fixture.add()
    feeds_fixture.work()
    assert "Its summary cannot be posted: the summary is not in the language" in told(feeds_fixture)
    preview = service(feeds_fixture).previews.preview("1")
    assert preview.body is None
    assert "language" in str(preview.problem)


@pytest.mark.parametrize("was_sent", [True, False])
def test_a_person_settles_a_post_whose_outcome_is_not_known(
    feeds_fixture: FeedsFixture, *, was_sent: bool
) -> None:
    with StandIn(lambda _request: Response(status=204)) as receiver:
        hook = {"type": "webhook", "url": receiver.url + "/hook", "secret": "s" * 32}
        feeds_fixture.section |= {**EXTRACTIVE, "accounts": {"default": hook}}
        receiver.faults.add(Fault(kind=FaultKind.RESET))
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
        assert "It was posted." in told(feeds_fixture)
        assert receiver.count() == (1 if was_sent else 2)
        with pytest.raises(Conflict, match="no post to decide about"):
            decisions.settle(["1"], was_sent=was_sent, dry_run=True)


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
