"""Hourly rollups: each closed hour is counted once, and together with the open ones every number is exact."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
from sqlalchemy import text

from support.factories import (
    add_worker,
    depose_and_take,
    end_by_shutdown,
    run_in_state,
    take_lead,
)
from support.moving_clock import NOON, MovingClock
from support.threads import at_once
from tsuzuki.engine.archive.rollups import HourlyRollups
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.states import FINAL_STATES, SKIP_REASONS, Outcome, RunState, outcome_of
from tsuzuki.services.statistics import RunStatistics
from tsuzuki.store import pruning, rollups
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves
from tsuzuki.store.sql.database import Connection, Database

HOUR = timedelta(hours=1)
FAILED, SUCCEEDED = Outcome.FAILED, Outcome.SUCCEEDED


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database, lease_seconds=600.0)


def ended(database: Database, term: Term, outcome: Outcome, count: int) -> None:
    for _ in range(count):
        run_in_state(database, outcome.state, term)


def stored(database: Database) -> dict[tuple[datetime, Outcome], int]:
    with database.read() as connection:
        rows = rollups.hours_between(connection, NOON - 30 * HOUR, NOON + 20_000 * HOUR)
    return {(row.hour, row.counted.outcome): row.counted.runs for row in rows}


def tick_all(database: Database, term: Term) -> None:
    duty = HourlyRollups(database=database)
    while duty.tick(term):
        pass


def test_an_hour_is_counted_when_it_is_over_and_settled(
    database: Database, term: Term, clock: MovingClock
) -> None:
    ended(database, term, FAILED, 2)
    ended(database, term, SUCCEEDED, 1)
    clock.advance(3600 + 299)
    tick_all(database, term)
    assert stored(database) == {}
    clock.advance(2)
    tick_all(database, term)
    assert stored(database) == {(NOON, FAILED): 2, (NOON, SUCCEEDED): 1}


def test_each_hour_is_counted_once_however_many_count(
    database: Database, term: Term, clock: MovingClock
) -> None:
    ended(database, term, FAILED, 3)
    clock.advance(2 * 3600)
    at_once(4, lambda _number: HourlyRollups(database=database).tick(term))
    tick_all(database, term)
    assert stored(database) == {(NOON, FAILED): 3}


def test_empty_hours_between_are_passed_over_in_one_step(
    database: Database, term: Term, clock: MovingClock
) -> None:
    ended(database, term, FAILED, 1)
    clock.advance(1000 * 3600)
    ended(database, term, FAILED, 1)
    clock.advance(2 * 3600)
    duty = HourlyRollups(database=database)
    assert [duty.tick(term) for _ in range(3)] == [True, True, False]
    assert stored(database) == {(NOON, FAILED): 1, (NOON + 1000 * HOUR, FAILED): 1}


def test_a_leader_of_the_past_stores_nothing(
    database: Database, term: Term, clock: MovingClock
) -> None:
    ended(database, term, FAILED, 1)
    clock.advance(2 * 3600)
    depose_and_take(database)
    assert not HourlyRollups(database=database).tick(term)
    assert stored(database) == {}
    with database.read() as connection:
        assert rollups.progress(connection) is None


def test_counts_are_kept_for_400_days(database: Database, term: Term, clock: MovingClock) -> None:
    ended(database, term, FAILED, 1)
    clock.advance(2 * 3600)
    tick_all(database, term)
    clock.advance(401 * 86_400)
    ended(database, term, SUCCEEDED, 1)
    clock.advance(2 * 3600)
    tick_all(database, term)
    assert [outcome for _, outcome in stored(database)] == [SUCCEEDED]


def test_an_end_by_a_shutdown_is_not_counted_on_time_or_late(
    database: Database, term: Term, clock: MovingClock
) -> None:
    def end_one_of_each() -> None:
        ended(database, term, FAILED, 1)
        end_by_shutdown(database, run_in_state(database, RunState.RUNNING, term).id)

    end_one_of_each()
    with database.read() as connection:
        open_hour = rollups.ended_between(connection, NOON, NOON + HOUR)
    assert [(count.outcome, count.runs) for count in open_hour] == [(FAILED, 1)]
    clock.advance(2 * 3600)
    tick_all(database, term)
    assert stored(database) == {(NOON, FAILED): 1}
    clock.step(-2 * 3600)
    end_one_of_each()
    clock.step(2 * 3600)
    tick_all(database, term)
    assert stored(database) == {(NOON, FAILED): 2}
    with database.read() as connection:
        assert not rollups.has_late_ends(connection)


# --- ends that are stored late --------------------------------------------------------------------


def test_ends_of_a_clock_that_was_set_back_are_added_to_their_hours(
    database: Database, term: Term, clock: MovingClock
) -> None:
    statistics = RunStatistics(database=database)
    for _ in range(4):
        ended(database, term, FAILED, 1)
        clock.advance(3600)
    clock.advance(600)
    tick_all(database, term)
    assert sum(hour.outcomes.runs[FAILED] for hour in statistics.by_hour(hours=6)) == 4
    clock.step(-3 * 3600)
    ended(database, term, FAILED, 2)
    ended(database, term, SUCCEEDED, 1)
    clock.step(3 * 3600)
    tick_all(database, term)
    assert stored(database) == {
        **{(NOON + number * HOUR, FAILED): 1 for number in (0, 2, 3)},
        (NOON + HOUR, FAILED): 3,
        (NOON + HOUR, SUCCEEDED): 1,
    }
    assert sum(hour.outcomes.runs[FAILED] for hour in statistics.by_hour(hours=6)) == 6
    assert statistics.by_job(hours=6)["hello"].runs == {FAILED: 6, SUCCEEDED: 1}
    tick_all(database, term)
    assert sum(stored(database).values()) == 7


def test_an_end_that_is_stored_while_its_hour_is_counted_is_counted_once(
    database: Database, term: Term, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is set back at that moment: before the hour is closed, before it is counted, before it is stored."""
    ended(database, term, FAILED, 1)
    clock.advance(2 * 3600)

    def end_one() -> None:
        clock.step(-2 * 3600)
        ended(database, term, FAILED, 1)
        clock.step(2 * 3600)

    for name in ("first_move_since", "ended_in_time"):
        called = getattr(rollups, name)

        def read(*given: Any, _called: Any = called) -> Any:
            end_one()
            answer = _called(*given)
            end_one()
            return answer

        monkeypatch.setattr(rollups, name, read)
    tick_all(database, term)
    monkeypatch.undo()
    tick_all(database, term)
    with database.read() as connection:
        (really,) = rollups.ended_between(connection, NOON, NOON + HOUR)
    assert really.runs > 4
    assert stored(database) == {(NOON, FAILED): really.runs}


@pytest.mark.parametrize("has_counted", [False, True])
def test_an_end_of_an_earlier_hour_that_is_stored_while_an_hour_is_chosen_is_counted(
    database: Database,
    term: Term,
    clock: MovingClock,
    monkeypatch: pytest.MonkeyPatch,
    has_counted: bool,
) -> None:
    """The clock is set back at that moment, to an hour in which nothing had ended so far."""
    clock.advance(4 * 3600)
    if has_counted:
        clock.step(-4 * 3600)
        ended(database, term, FAILED, 1)
        clock.step(4 * 3600)
        tick_all(database, term)
    ended(database, term, FAILED, 1)
    clock.advance(2 * 3600)
    first_move_since = rollups.first_move_since

    def choose(*given: Any) -> Any:
        answer = first_move_since(*given)
        clock.step(-4 * 3600)
        ended(database, term, SUCCEEDED, 1)
        clock.step(4 * 3600)
        return answer

    monkeypatch.setattr(rollups, "first_move_since", choose)
    HourlyRollups(database=database).tick(term)
    monkeypatch.undo()
    tick_all(database, term)
    with database.read() as connection:
        (really,) = rollups.ended_between(connection, NOON + 2 * HOUR, NOON + 3 * HOUR)
    assert stored(database)[NOON + 2 * HOUR, SUCCEEDED] == really.runs
    assert stored(database)[NOON + 4 * HOUR, FAILED] == 1


def test_an_end_whose_transaction_commits_late_is_counted(
    database: Database, term: Term, clock: MovingClock
) -> None:
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    run = run_in_state(database, RunState.RUNNING, term)
    is_held, may_commit = Event(), Event()

    def cancel() -> None:
        with database.write() as connection:
            assert moves.cancel(connection, operator="ada", runs=[run])
            is_held.set()
            assert may_commit.wait(30)

    with ThreadPoolExecutor(1) as pool:
        canceled = pool.submit(cancel)
        assert is_held.wait(30)
        clock.advance(2 * 3600)
        make_transactions_long(database)
        assert not HourlyRollups(database=database).tick(term)
        may_commit.set()
        canceled.result()
    assert stored(database) == {}
    tick_all(database, term)
    assert stored(database) == {(NOON, Outcome.CANCELED): 1}


def make_transactions_long(database: Database) -> None:
    """A transaction of this test takes milliseconds of real time, and is to look like one of hours."""
    with database.write() as connection:
        connection.execute(
            text(
                "CREATE OR REPLACE FUNCTION tsuzuki_now(offset_seconds double precision)"
                " RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now"
                " + make_interval(secs => offset_seconds * 10000000) FROM test_clock $$"
            )
        )


def test_a_late_end_is_not_deleted_before_it_is_added(
    database: Database, term: Term, clock: MovingClock
) -> None:
    ended(database, term, FAILED, 1)
    clock.advance(2 * 3600)
    tick_all(database, term)
    clock.step(-2 * 3600)
    late = run_in_state(database, RunState.FAILED, term).id
    clock.step(2 * 3600)

    def due() -> list[int]:
        with database.read() as connection:
            return pruning.due(connection, finished_before=NOON + HOUR, limit=10)

    assert late not in due()
    tick_all(database, term)
    assert late in due()


# --- what people ask ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_counted", [True, False])
def test_closed_and_open_hours_together_are_exact(
    database: Database, term: Term, clock: MovingClock, is_counted: bool
) -> None:
    for number, state in enumerate(sorted(FINAL_STATES), start=1):
        for _ in range(number):
            run_in_state(database, state, term)
    clock.advance(3 * 3600)
    ended(database, term, FAILED, 5)
    if is_counted:
        tick_all(database, term)
    hours = RunStatistics(database=database).by_hour(hours=5)
    assert [one.hour for one in hours] == [NOON + number * HOUR for number in range(-1, 4)]
    assert [dict(one.outcomes.runs) for one in hours] == [
        {},
        {outcome_of(state, None): n for n, state in enumerate(sorted(FINAL_STATES), start=1)},
        {},
        {},
        {FAILED: 5},
    ]
    by_job = RunStatistics(database=database).by_job(hours=5)
    assert by_job["hello"].runs[FAILED] == 2 + 5
    assert by_job["hello"].duration(0.5) is not None, "ten runs were started"


@pytest.mark.parametrize("is_counted", [True, False])
def test_skipped_runs_are_counted_apart_from_canceled_ones(
    database: Database, term: Term, clock: MovingClock, is_counted: bool
) -> None:
    ended(database, term, Outcome.CANCELED, 1)
    for reason in sorted(SKIP_REASONS):
        pending = run_in_state(database, RunState.PENDING, term)
        with database.write() as connection:
            moves.skip(connection, term=term, runs=[pending], reason=reason)
    clock.advance(2 * 3600)
    if is_counted:
        tick_all(database, term)
    counted = RunStatistics(database=database).by_job(hours=3)["hello"].runs
    assert counted == {Outcome.CANCELED: 1, Outcome.SKIPPED: len(SKIP_REASONS)}


def test_hours_that_were_asked_for_before_are_counted_once(
    database: Database, term: Term, clock: MovingClock
) -> None:
    for _ in range(3):
        ended(database, term, FAILED, 1)
        clock.advance(3600)
    clock.advance(3600)
    tick_all(database, term)
    statistics = RunStatistics(database=database)
    (middle,) = statistics.by_hour(hours=1, end=NOON + HOUR)
    assert middle.outcomes.runs == {FAILED: 1}
    hours = statistics.by_hour(hours=3, end=NOON + 2 * HOUR)
    assert [one.outcomes.runs[FAILED] for one in hours] == [1, 1, 1]


def test_one_job_alone_and_one_that_is_not_there(database: Database, term: Term) -> None:
    ended(database, term, FAILED, 1)
    statistics = RunStatistics(database=database)
    (hour,) = statistics.by_hour(hours=1, job_name="hello")
    assert hour.outcomes.runs == {FAILED: 1}
    with pytest.raises(NotFound):
        statistics.by_hour(job_name="other")
    with pytest.raises(UsageError):
        statistics.by_hour(hours=0)
    with pytest.raises(UsageError):
        statistics.by_job(hours=0)


def test_what_is_kept_in_memory_is_what_would_be_counted_anew(
    database: Database, term: Term, clock: MovingClock
) -> None:
    kept = RunStatistics(database=database)
    for seconds in (0, 5, 20, 1800, 1795, 3, 3600, 30, 7200, -600, 40):
        if seconds < 0:
            clock.step(seconds)
        else:
            clock.advance(seconds)
        ended(database, term, FAILED, 2)
        if seconds == 7200:
            tick_all(database, term)
        for hours in (1, 6, 3):
            fresh = RunStatistics(database=database)
            assert kept.by_hour(hours=hours) == fresh.by_hour(hours=hours)
            assert kept.by_hour(hours=hours, job_name="hello") == fresh.by_hour(
                hours=hours, job_name="hello"
            )
            assert kept.by_job(hours=hours) == fresh.by_job(hours=hours)
    # Two ended at a time that, since the clock was put back, is yet to come.
    assert kept.by_job(hours=24)["hello"].runs[FAILED] == 22 - 2


def test_what_is_settled_is_counted_once(
    database: Database, term: Term, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = RunStatistics(database=database)
    ended(database, term, FAILED, 2)
    clock.advance(1200)
    kept.by_hour()
    asked: list[datetime] = []
    real = rollups.ended_between

    def noted(connection: Connection, start: datetime, end: datetime) -> list[rollups.HourCount]:
        asked.append(start)
        return real(connection, start, end)

    monkeypatch.setattr(rollups, "ended_between", noted)
    clock.advance(60)
    assert kept.by_hour(hours=1)[0].outcomes.runs == {FAILED: 2}
    assert min(asked) == clock.now() - timedelta(seconds=70)
