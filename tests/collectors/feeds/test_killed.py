"""A run killed at any moment of an item's life, and a fresh one after it: one post, each step paid for once."""

import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import pytest

from support.databases import opened
from support.factories import WORKER
from support.handler_runs import ObservedContext
from support.observed_run_io import Act, Killed, ObservedRunIO, kill_at
from tsuzuki.collectors.feeds.collect import collect
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.sandbox.feed_site import ArticlePage
from tsuzuki.collectors.feeds.sandbox.mastodon import KeyMode, WriteCase
from tsuzuki.model.states import RunState

from .feeds_fixture import FeedsFixture, FeedsRun

PLAIN = ArticlePage(
    body=b"The bridge was opened today. Many people came.", content_type="text/plain"
)
"""It needs no process that reads documents."""

NO_CAPS = {"per_run": None, "per_hour": None, "per_day": None}
FIRST_OF_POST = 6
"""The commits of a run from here on belong to its post, or come shortly before it."""

FETCHED, DOWNLOADED, SCREENED, SUMMARISED, POSTED = 2, 5, 6, 7, 8
"""The commits that store these, in a run that knows the limits of its account. Then the next request leaves."""


def assert_done_once(fixture: FeedsFixture, articles: int, lost_answers: int, told: str) -> None:
    """Every article is posted once and processed, and paid for once beside the answers that a crash lost."""
    expected = {"status": ItemStatus.PROCESSED, "reason": ItemReason.NONE}
    for item in fixture.items():
        assert expected.items() <= item.items(), told
        assert item["retry_count"] <= 1, told
    assert fixture.waiting() == [], told
    assert len(fixture.posts) == len(set(fixture.posts)) == articles, told
    done = [(one["item_id"], one["step"]) for one in fixture.steps() if one["is_paid"]]
    assert len(done) == len(set(done)) == 2 * articles, told
    assert fixture.gemini.paid.count() == len(done) + lost_answers, told
    assert {one["state"] for one in fixture.stored_posts()} == {"sent"}, told


def settle(fixture: FeedsFixture) -> None:
    """Runs until a post that was cut off, or has no answer, is found or made."""
    for seconds in (0, 60, 300, 900):
        fixture.database.clock.advance(seconds)
        fixture.work()
        if not fixture.waiting():
            return


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("case", [None, *WriteCase][:4])
@pytest.mark.parametrize("mode", list(KeyMode))
def test_killed_at_any_commit_an_item_is_posted_once_and_paid_for_once(
    feeds_fixture: FeedsFixture, mode: KeyMode, case: WriteCase | None, moment: str
) -> None:
    fixture = feeds_fixture
    fixture.feed = {"caps": NO_CAPS}
    fixture.mastodon.settings.key_mode = mode
    is_plain = case is None and mode is KeyMode.HONOURED
    lost_answers = 0
    for articles, number in enumerate(count(1 if is_plain else FIRST_OF_POST), 1):
        if case is not None:
            fixture.mastodon.post_cases.clear()
            fixture.mastodon.post_cases.add(case, seconds=8)
        fixture.add(f"Article {number}", page=PLAIN)
        try:
            fixture.start().work(**{moment: kill_at(number)})
        except Killed:
            lost_answers = fixture.gemini.paid.count() - fixture.paid_steps()
        else:
            break  # it had fewer commits
        finally:
            settle(fixture)
            told = f"killed {moment} commit {number}"
            assert_done_once(fixture, articles, lost_answers, told)
    assert number > FIRST_OF_POST + 1


def kill_process(run: FeedsRun, url: str, **acts: Act) -> None:
    """Let a process of its own work on the run until it is killed; then the leader finds and ends the run."""
    fixture = run.feeds_fixture
    fixture.database.close()
    child = os.fork()
    if child == 0:
        try:
            work_in(run, url, acts)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert run.end(RunState.FAILED)


def work_in(run: FeedsRun, url: str, acts: Mapping[str, Act]) -> None:
    fixture, clock = run.feeds_fixture, run.database.clock
    with opened(url, clock) as database:
        run_io = ObservedRunIO(database=database, output=run.output, worker_id=lambda: WORKER)
        vars(run_io).update(acts)
        context = ObservedContext(
            task=run.task, run_io=run_io, clock=clock, stop_signal=run.stop_signal
        )
        collect(replace(fixture.collector_context, database=database), context)


def die_at(number: int) -> Act:
    def die(commit: int) -> None:
        if commit == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def test_a_process_killed_at_each_step_of_an_item_costs_no_post_and_no_payment(
    feeds_fixture: FeedsFixture, database_url: str
) -> None:
    fixture = feeds_fixture
    fixture.feed = {"caps": NO_CAPS}
    fixture.mastodon.settings.key_mode = KeyMode.IGNORED
    fixture.add("Article 0", page=PLAIN)
    fixture.work()
    kills = [{"after": die_at(n)} for n in (FETCHED, DOWNLOADED, SCREENED, SUMMARISED, POSTED)]
    kills += [{"before": die_at(POSTED)}]
    for number, acts in enumerate(kills, 1):
        fixture.add(f"Article {number}", page=PLAIN)
        kill_process(fixture.start(), database_url, **acts)
        is_sent = len(fixture.posts) == number + 1
        assert is_sent is (acts in kills[-2:]), "it was killed where it was to be"
        settle(fixture)
        assert_done_once(fixture, number + 1, 0, f"kill {number}")
