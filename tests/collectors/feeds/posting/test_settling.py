"""A post without an answer is looked for by later runs, and made anew only when two looks apart did not find it."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from collectors.feeds.feeds_fixture import FeedsFixture
from support.observed_run_io import Killed, kill_at
from support.threads import at_once
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.sandbox.feed_site import ArticlePage
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, KeyMode, WriteCase
from tsuzuki.collectors.feeds.tables import WaitingState
from tsuzuki.model.errors import Conflict
from tsuzuki.sandbox.faults import StandInFault

PLAIN = ArticlePage(
    body=b"The bridge was opened today. Many people came to see it, and the mayor too.",
    content_type="text/plain",
)
POSTED_AFTER_A_RETRY = (ItemStatus.PROCESSED, ItemReason.NONE, 1)
API_FAILED = (ItemStatus.DEFERRED, ItemReason.API_FAILED, 1)
PAUSES = (60, 300)
NO_CAPS = {"per_run": None, "per_hour": None, "per_day": None}
sqlite_only = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def pass_time(fixture: FeedsFixture, seconds: float) -> None:
    fixture.database.clock.advance(seconds)


def unsettled(
    fixture: FeedsFixture, case: WriteCase = WriteCase.REQUEST_LOST, **about: Any
) -> None:
    """An item whose post has no answer and is not there yet."""
    fixture.mastodon.settings.key_mode = KeyMode.IGNORED
    fixture.mastodon.post_cases.add(case, **about)
    fixture.add(page=PLAIN)
    fixture.work()
    assert fixture.item() == API_FAILED
    assert stored(fixture)["state"] == "unsettled"


def stored(fixture: FeedsFixture) -> dict[str, Any]:
    (post,) = fixture.stored_posts()
    return post


# --- servers that store late ------------------------------------------------------------------------


@sqlite_only
@pytest.mark.parametrize("stored_after", [8, 50, 200])
@pytest.mark.parametrize("lag", [0, 10, 100])
def test_a_server_that_ignores_the_key_and_stores_late_gets_one_post(
    feeds_fixture: FeedsFixture, stored_after: int, lag: int
) -> None:
    feeds_fixture.mastodon.settings.list_lag_seconds = lag
    unsettled(feeds_fixture, WriteCase.STORED_LATER, seconds=stored_after)
    for seconds in (10, 20, 30, 30, 30, 60, 120, 60, 60, 60, 60):
        pass_time(feeds_fixture, seconds)
        feeds_fixture.work()
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY
    assert len(feeds_fixture.posts) == 1
    assert stored(feeds_fixture)["state"] == "sent"
    assert feeds_fixture.gemini.paid.count() == 2


@sqlite_only
def test_a_post_that_hangs_beyond_our_timeout_and_is_listed_late_is_found(
    feeds_fixture: FeedsFixture,
) -> None:
    url = feeds_fixture.mastodon_server.url
    impatient = {"type": "mastodon", "base_url": url, "access_token": TOKEN, "timeout": 0.3}
    feeds_fixture.section = {"accounts": {"default": impatient}}
    feeds_fixture.mastodon.settings.list_lag_seconds = 10
    unsettled(feeds_fixture, WriteCase.SLOW, seconds=60)
    assert len(feeds_fixture.posts) == 1
    pass_time(feeds_fixture, 60)
    feeds_fixture.work()
    assert len(feeds_fixture.posts) == 1
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY


# --- posts that never arrive ------------------------------------------------------------------------


def test_a_post_that_is_not_there_at_two_looks_apart_is_made_anew(
    feeds_fixture: FeedsFixture,
) -> None:
    unsettled(feeds_fixture)
    for seconds in (59, 2, 298):
        pass_time(feeds_fixture, seconds)
        feeds_fixture.work()
        assert feeds_fixture.posts == []
        assert feeds_fixture.item() == API_FAILED, "looking is no try"
    pass_time(feeds_fixture, 3)
    feeds_fixture.work()
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY
    assert len(feeds_fixture.posts) == 1
    assert feeds_fixture.gemini.paid.count() == 2


@sqlite_only
def test_the_looks_grow_apart_and_continue_as_long_as_the_server_is_silent(
    feeds_fixture: FeedsFixture,
) -> None:
    unsettled(feeds_fixture)
    feeds_fixture.mastodon_server.faults.add(StandInFault(status=503, times=None))
    pauses = []
    for _ in range(6):
        now = feeds_fixture.database.clock.now()
        pauses.append((stored(feeds_fixture)["next_look_at"] - now).total_seconds() / 60)
        pass_time(feeds_fixture, pauses[-1] * 60)
        feeds_fixture.work()
    assert pauses == [1, 5, 15, 60, 60, 60]
    assert feeds_fixture.item() == API_FAILED
    feeds_fixture.mastodon_server.faults.clear()
    for _ in range(2):
        pass_time(feeds_fixture, 3_600)
        feeds_fixture.work()
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY
    assert len(feeds_fixture.posts) == 1


@sqlite_only
def test_a_settling_time_of_the_account_sets_the_pauses(feeds_fixture: FeedsFixture) -> None:
    url = feeds_fixture.mastodon_server.url
    quick = {"type": "mastodon", "base_url": url, "access_token": TOKEN, "settling_time": "2s"}
    feeds_fixture.section = {"accounts": {"default": quick}}
    unsettled(feeds_fixture)
    for seconds in (2, 10):
        pass_time(feeds_fixture, seconds)
        feeds_fixture.work()
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY


@sqlite_only
def test_an_item_that_is_never_answered_is_given_up_after_its_tries(
    feeds_fixture: FeedsFixture,
) -> None:
    feeds_fixture.options = {"retry_limit": 1}
    feeds_fixture.mastodon.settings.key_mode = KeyMode.IGNORED
    feeds_fixture.mastodon.post_cases.add(WriteCase.REQUEST_LOST)
    feeds_fixture.mastodon.post_cases.add(WriteCase.STORED_LATER, seconds=100)
    feeds_fixture.add(page=PLAIN)
    for seconds in (0, *PAUSES):
        pass_time(feeds_fixture, seconds)
        feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.PROCESSED, ItemReason.RETRY_LIMIT_EXCEEDED, 2)
    pass_time(feeds_fixture, 3_600)
    feeds_fixture.work()
    assert feeds_fixture.item() == (ItemStatus.PROCESSED, ItemReason.NONE, 2), "it had arrived"
    assert len(feeds_fixture.posts) == 1


# --- other items, other runs ------------------------------------------------------------------------


@sqlite_only
def test_other_items_go_on_while_one_is_unsettled(feeds_fixture: FeedsFixture) -> None:
    feeds_fixture.feed = {"caps": NO_CAPS}
    feeds_fixture.mastodon.post_cases.add(WriteCase.REQUEST_LOST)
    for number in range(4):
        feeds_fixture.add(f"Article {number}", page=PLAIN)
    result = feeds_fixture.work()["process"]
    assert (result["posted"], result["deferred"]) == (3, {"api_failed": 1})


@sqlite_only
def test_a_run_is_asked_for_at_the_minute_of_the_next_look(feeds_fixture: FeedsFixture) -> None:
    pass_time(feeds_fixture, 10.5)
    unsettled(feeds_fixture)
    look_at: datetime = stored(feeds_fixture)["next_look_at"]
    (coming,) = feeds_fixture.coming_runs()
    assert coming.scheduled_for is not None
    assert look_at <= coming.scheduled_for < look_at + timedelta(minutes=1)
    assert coming.scheduled_for.second == 0
    pass_time(feeds_fixture, (coming.scheduled_for - look_at).total_seconds() + 60)
    feeds_fixture.work()
    assert len(feeds_fixture.coming_runs()) == 2, "and one for the look after it"


def test_two_runs_that_look_at_once_count_as_one_look(feeds_fixture: FeedsFixture) -> None:
    unsettled(feeds_fixture)
    pass_time(feeds_fixture, 60)
    started = [feeds_fixture.start() for _ in range(2)]
    at_once(2, lambda number: started[number].work())
    assert stored(feeds_fixture)["absences"] == 1
    assert feeds_fixture.posts == []
    pass_time(feeds_fixture, 300)
    started = [feeds_fixture.start() for _ in range(2)]
    at_once(2, lambda number: started[number].work())
    feeds_fixture.work()
    assert len(feeds_fixture.posts) == 1
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY


LOOKS = (0, *PAUSES, 900, 3_600, 3_600)
"""The first run, and those that look for its post."""


def kill_runs(
    fixture: FeedsFixture, case: WriteCase, moment: str, kills: Iterable[tuple[int, int]]
) -> None:
    """An article for each kill, which says in which of the runs it happens, and at which commit."""
    fixture.feed = {"caps": NO_CAPS}
    fixture.mastodon.settings.key_mode = KeyMode.IGNORED
    for articles, (killed_run, number) in enumerate(kills, 1):
        fixture.mastodon.post_cases.clear()
        fixture.mastodon.post_cases.add(case, seconds=100)
        fixture.add(f"Article {articles}", page=PLAIN)
        for run, seconds in enumerate(LOOKS):
            pass_time(fixture, seconds)
            with suppress(Killed):
                fixture.start().work(**({moment: kill_at(number)} if run == killed_run else {}))
            if run > killed_run and not fixture.waiting():
                break
        told = f"killed {moment} commit {number} of run {killed_run}"
        assert len(fixture.posts) == articles, told
        assert {row["reason"] for row in fixture.items()} == {ItemReason.NONE}, told
        assert fixture.waiting() == [], told
        assert fixture.paid_steps() == 2 * articles, told


@sqlite_only
def test_killed_while_a_post_is_unsettled_it_is_made_once(feeds_fixture: FeedsFixture) -> None:
    kills = [(0, 6), (0, 7), (1, 3), (2, 3), (2, 4)]
    kill_runs(feeds_fixture, WriteCase.REQUEST_LOST, "after", kills)


@pytest.mark.full
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("case", [WriteCase.REQUEST_LOST, WriteCase.STORED_LATER])
def test_killed_at_any_commit_while_a_post_is_unsettled_it_is_made_once(
    feeds_fixture: FeedsFixture, case: WriteCase, moment: str
) -> None:
    kill_runs(feeds_fixture, case, moment, product(range(3), range(3, 10)))


# --- what a person sees and decides -----------------------------------------------------------------


@sqlite_only
def test_an_item_shows_that_its_post_is_not_settled_and_when_it_is_looked_for(
    feeds_fixture: FeedsFixture,
) -> None:
    unsettled(feeds_fixture)
    look_at = stored(feeds_fixture)["next_look_at"]
    (view,) = feeds_fixture.service.items.find()
    assert (view.outcome, view.next_look_at) == ("not settled", look_at)
    assert feeds_fixture.service.items.get("1").as_dict()["next_look_at"] == look_at
    (first, *_rest) = feeds_fixture.service.explanations.explain("1").next
    assert first.values["when"] == look_at
    assert feeds_fixture.service.explanations.plan("bot", limit=None) == []
    for seconds in PAUSES:
        pass_time(feeds_fixture, seconds)
        feeds_fixture.work()
    (view,) = feeds_fixture.service.items.find()
    assert (view.outcome, view.next_look_at) == ("posted", None)


@sqlite_only
def test_an_unsettled_item_is_not_worked_on_again_before_it_is_settled(
    feeds_fixture: FeedsFixture,
) -> None:
    unsettled(feeds_fixture)
    with pytest.raises(Conflict) as refused:
        feeds_fixture.service.items.requeue(["1"])
    assert refused.value.specific_code == "post_unsettled"
    assert feeds_fixture.service.items.requeue_by_reason("api_failed") == []


@pytest.mark.parametrize("was_sent", [True, False])
def test_a_person_may_settle_a_post_before_the_runs_do(
    feeds_fixture: FeedsFixture, *, was_sent: bool
) -> None:
    unsettled(feeds_fixture)
    feeds_fixture.service.items.settle(["1"], was_sent=was_sent)
    feeds_fixture.work()
    assert feeds_fixture.item() == POSTED_AFTER_A_RETRY
    assert len(feeds_fixture.posts) == (0 if was_sent else 1)
    for seconds in PAUSES:
        pass_time(feeds_fixture, seconds)
        feeds_fixture.work()
    assert len(feeds_fixture.posts) == (0 if was_sent else 1)


@sqlite_only
def test_a_post_that_can_no_longer_be_found_out_waits_for_a_person(
    feeds_fixture: FeedsFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsettled(feeds_fixture)
    monkeypatch.setattr("tsuzuki.collectors.feeds.channels.mastodon.PAGES_MAX", 0)
    pass_time(feeds_fixture, 60)
    feeds_fixture.work()
    assert stored(feeds_fixture)["next_look_at"] is None
    (waiting,) = feeds_fixture.waiting()
    assert waiting["state"] == WaitingState.APPROVAL
    feeds_fixture.service.items.settle(["1"], was_sent=False)
    feeds_fixture.work()
    assert len(feeds_fixture.posts) == 1
