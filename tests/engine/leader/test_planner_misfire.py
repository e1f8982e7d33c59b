"""Late ticks under each misfire policy: which ones run, and which are recorded as skips."""

import pytest

from support.moving_clock import MovingClock
from support.planning import ALLOW, HOUR, MINUTELY, a_planner, all_runs, at, created, scheduled
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Actor, Reason, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")


def test_misfire_one_runs_the_newest_and_records_each_older_as_late(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.ONE)
    clock.advance(3.5 * HOUR)
    planned = a_planner(database).tick(term)
    assert (planned.created, planned.skipped) == (1, 2)
    assert created(database) == [
        (at(1), RunState.CANCELED, Reason.LATE),
        (at(2), RunState.CANCELED, Reason.LATE),
        (at(3), RunState.PENDING, None),
    ]


def test_misfire_one_beyond_the_window_runs_nothing(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.ONE, catchup_window_seconds=60)
    clock.advance(1.5 * HOUR)
    a_planner(database).tick(term)
    assert created(database) == [(at(1), RunState.CANCELED, Reason.LATE)]


def test_misfire_skip_records_what_is_late_and_waits_for_the_next(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.SKIP)
    planner = a_planner(database)
    clock.advance(2 * HOUR + 61)
    planned = planner.tick(term)
    assert (planned.created, planned.skipped, planned.next_at) == (0, 2, at(3))
    clock.advance(HOUR - 61)
    assert planner.tick(term).created == 1
    assert created(database)[-1] == (at(3), RunState.PENDING, None)


def test_misfire_all_runs_every_tick_within_the_window_oldest_first(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(
        database, misfire=Misfire.ALL, catchup_window_seconds=2 * HOUR, concurrency_policy=ALLOW
    )
    clock.advance(4 * HOUR)
    planned = a_planner(database).tick(term)
    assert (planned.created, planned.skipped) == (3, 1)
    assert created(database) == [
        (at(1), RunState.CANCELED, Reason.LATE),
        (at(2), RunState.PENDING, None),
        (at(3), RunState.PENDING, None),
        (at(4), RunState.PENDING, None),
    ]


def test_the_current_setting_of_the_grace_counts(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.SKIP)
    clock.advance(1.5 * HOUR)
    generous = EngineSettings(misfire_grace_seconds=1800)
    assert a_planner(database, generous).tick(term).created == 1


def test_a_long_absence_is_recorded_as_one_skip_that_says_what_it_covers(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, MINUTELY)
    clock.advance(10 * HOUR)
    a_planner(database).tick(term)
    skip, run = all_runs(database)
    assert (skip.state, skip.reason) == (RunState.CANCELED, Reason.LATE)
    assert (skip.scheduled_for, skip.covers_until) == (at(1 / 60), at(10 - 1 / 60))
    assert skip.covers_ticks == 599
    assert (run.scheduled_for, run.state) == (at(10), RunState.PENDING)


def test_a_skip_has_its_history_signed_by_the_leader(
    database: Database, clock: MovingClock, term: Term
) -> None:
    scheduled(database, misfire=Misfire.SKIP)
    clock.advance(1.5 * HOUR)
    a_planner(database).tick(term)
    (skip,) = all_runs(database)
    with database.read() as connection:
        (move,) = runs.history(connection, skip.id)
    assert (move.actor, move.actor_id, move.epoch) == (Actor.LEADER, term.holder, term.epoch)
    assert (move.from_state, move.to_state, move.reason) == (
        RunState.PENDING,
        RunState.CANCELED,
        Reason.LATE,
    )


def test_more_ticks_than_one_round_takes_are_planned_in_further_rounds(
    database: Database, clock: MovingClock, term: Term
) -> None:
    cron = parse_schedule("* * * * *")
    scheduled(database, cron, misfire=Misfire.ALL, concurrency_policy=ALLOW)
    planner = a_planner(database)
    clock.advance(18 * HOUR)
    first, second, third = (planner.tick(term) for _ in range(3))
    assert (first.created, first.more) == (1000, True)
    assert (second.created, second.more, second.next_at) == (80, False, at(18 + 1 / 60))
    assert (third.created, third.more) == (0, False)
    assert [run.scheduled_for for run in all_runs(database)] == [
        at(minute / 60) for minute in range(1, 1081)
    ]
