"""Late ticks: each is run or recorded as skipped, exactly once, and never walked for long."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.model.misfire import RECORDS_MAX, Misfire, SkippedTicks, TickPlan, plan_ticks
from tsuzuki.model.schedule import Every, Schedule, parse_schedule, upcoming

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
HOURLY = parse_schedule("every 1h")
EVERY_SECOND = parse_schedule("every 1s")
EVERY_MINUTE = parse_schedule("* * * * *")


def plan(
    schedule: Schedule,
    misfire: Misfire,
    *,
    behind: timedelta,
    catchup: timedelta = timedelta(days=1),
    grace: timedelta = MINUTE,
    now: datetime = NOON,
    ticks_max: int = 1000,
) -> TickPlan:
    return plan_ticks(
        schedule,
        planned_until=now - behind,
        now=now,
        misfire=misfire,
        catchup_window=catchup,
        grace=grace,
        ticks_max=ticks_max,
    )


def one(tick: datetime) -> SkippedTicks:
    return SkippedTicks(first=tick, last=tick, count=1)


@pytest.mark.parametrize("misfire", Misfire)
def test_a_tick_on_time_runs_under_every_policy(misfire: Misfire) -> None:
    planned = plan(HOURLY, misfire, behind=timedelta(seconds=1))
    assert planned == TickPlan(
        run=(NOON,), missed=False, skipped=(), planned_until=NOON, more=False
    )


@pytest.mark.parametrize("misfire", Misfire)
def test_nothing_due_moves_only_the_mark(misfire: Misfire) -> None:
    now = NOON + 30 * MINUTE
    planned = plan(HOURLY, misfire, behind=20 * MINUTE, now=now)
    assert planned == TickPlan(run=(), missed=False, skipped=(), planned_until=now, more=False)


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("schedule", [HOURLY, EVERY_MINUTE])
def test_a_clock_stepped_back_plans_nothing_and_keeps_the_mark(
    schedule: Schedule, misfire: Misfire
) -> None:
    planned = plan(schedule, misfire, behind=-3 * HOUR)
    assert planned == TickPlan(
        run=(), missed=False, skipped=(), planned_until=NOON + 3 * HOUR, more=False
    )


def test_one_runs_the_newest_and_skips_the_older() -> None:
    planned = plan(HOURLY, Misfire.ONE, behind=3 * HOUR)
    assert planned.run == (NOON,)
    assert planned.skipped == (one(NOON - 2 * HOUR), one(NOON - HOUR))


def test_one_skips_even_the_newest_when_it_is_beyond_the_window() -> None:
    now = NOON + 30 * MINUTE
    planned = plan(HOURLY, Misfire.ONE, behind=HOUR, now=now, catchup=20 * MINUTE)
    assert planned.run == ()
    assert planned.skipped == (one(NOON),)


def test_skip_runs_only_what_is_within_grace() -> None:
    now = NOON + timedelta(seconds=60)
    assert plan(HOURLY, Misfire.SKIP, behind=2 * HOUR, now=now).run == (NOON,)
    assert plan(HOURLY, Misfire.SKIP, behind=2 * HOUR, now=now + timedelta(seconds=1)).run == ()


def test_all_runs_what_is_within_the_window_and_skips_the_older() -> None:
    planned = plan(HOURLY, Misfire.ALL, behind=5 * HOUR, catchup=2 * HOUR)
    assert planned.run == (NOON - 2 * HOUR, NOON - HOUR, NOON)
    assert planned.missed
    assert planned.skipped == (one(NOON - 4 * HOUR), one(NOON - 3 * HOUR))


def test_ticks_are_missed_if_several_are_due_or_the_only_one_is_later_than_the_grace() -> None:
    ten_seconds = Every(interval=timedelta(seconds=10))
    assert not plan(ten_seconds, Misfire.ALL, behind=timedelta(seconds=10)).missed
    assert plan(ten_seconds, Misfire.ALL, behind=timedelta(seconds=20)).missed
    assert not plan(HOURLY, Misfire.ALL, behind=2 * MINUTE, now=NOON + MINUTE).missed
    assert plan(HOURLY, Misfire.ALL, behind=3 * MINUTE, now=NOON + 2 * MINUTE).missed


def test_a_slice_leaves_no_tick_alone_that_would_pass_for_one_in_time() -> None:
    whole = plan(EVERY_MINUTE, Misfire.ALL, behind=31 * MINUTE, ticks_max=30)
    assert (len(whole.run), whole.more) == (31, False)
    first = plan(EVERY_MINUTE, Misfire.ALL, behind=32 * MINUTE, ticks_max=30)
    assert (len(first.run), first.more) == (30, True)
    rest = plan(EVERY_MINUTE, Misfire.ALL, behind=NOON - first.planned_until, ticks_max=30)
    assert (len(rest.run), rest.missed) == (2, True)


@pytest.mark.parametrize("misfire", [Misfire.ONE, Misfire.ALL])
def test_grace_counts_even_without_a_window(misfire: Misfire) -> None:
    now = NOON + timedelta(seconds=30)
    assert plan(HOURLY, misfire, behind=MINUTE, now=now, catchup=timedelta(0)).run == (NOON,)


def test_a_window_beyond_the_calendar_is_no_bound() -> None:
    planned = plan(HOURLY, Misfire.ALL, behind=2 * HOUR, catchup=timedelta(days=999_999_999))
    assert planned.run == (NOON - HOUR, NOON)


def test_more_than_a_few_skipped_ticks_are_recorded_as_one_range() -> None:
    few = plan(EVERY_MINUTE, Misfire.ONE, behind=(RECORDS_MAX + 1) * MINUTE)
    assert [record.count for record in few.skipped] == [1] * RECORDS_MAX
    many = plan(EVERY_MINUTE, Misfire.ONE, behind=(RECORDS_MAX + 2) * MINUTE)
    assert many.skipped == (
        SkippedTicks(
            first=NOON - (RECORDS_MAX + 1) * MINUTE, last=NOON - MINUTE, count=RECORDS_MAX + 1
        ),
    )
    assert many.run == (NOON,)


def test_under_one_a_slice_with_newer_ticks_behind_it_is_skipped_whole() -> None:
    planned = plan(EVERY_MINUTE, Misfire.ONE, behind=100 * MINUTE, ticks_max=30)
    assert planned.more
    assert planned.run == ()
    assert planned.planned_until == NOON - 70 * MINUTE
    assert sum(record.count for record in planned.skipped) == 30


@pytest.mark.parametrize("misfire", [Misfire.ONE, Misfire.SKIP])
def test_a_year_of_missed_seconds_is_passed_over_in_one_plan(misfire: Misfire) -> None:
    planned = plan(EVERY_SECOND, misfire, behind=timedelta(days=365), grace=timedelta(0))
    assert planned.run == (NOON,)
    assert [record.count for record in planned.skipped] == [365 * 86400 - 1]
    assert not planned.more


def test_planning_that_could_not_move_on_is_refused() -> None:
    with pytest.raises(ValueError, match="make no progress"):
        plan(HOURLY, Misfire.ONE, behind=HOUR, ticks_max=0)


SCHEDULES = [
    parse_schedule(written, default_timezone="Europe/Berlin")
    for written in (
        "every 7s",
        "every 10m",
        "*/15 * * * *",
        "30 2 * * *",
        "hourly at :15 and :45",
        "daily at 02:10, 02:40",
    )
]
# Berlin's clock is changed at 01:00 UTC on both days.
nights = st.sampled_from(
    [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]
)
spans = st.timedeltas(timedelta(0), 6 * HOUR)


@settings(max_examples=150)
@given(
    schedule=st.sampled_from(SCHEDULES),
    misfire=st.sampled_from(Misfire),
    now=st.builds(lambda night, span: night + span - 3 * HOUR, nights, spans),
    behind=st.timedeltas(-HOUR, 6 * HOUR),
    catchup=spans,
    grace=st.timedeltas(timedelta(0), 10 * MINUTE),
    ticks_max=st.integers(1, 50),
)
def test_every_tick_is_run_or_skipped_exactly_once(
    schedule: Schedule,
    misfire: Misfire,
    now: datetime,
    behind: timedelta,
    catchup: timedelta,
    grace: timedelta,
    ticks_max: int,
) -> None:
    mark = now - behind
    due = _ticks_between(schedule, mark, now)
    runs: list[datetime] = []
    more = True
    while more:
        planned = plan_ticks(
            schedule,
            planned_until=mark,
            now=now,
            misfire=misfire,
            catchup_window=catchup,
            grace=grace,
            ticks_max=ticks_max,
        )
        more = planned.more
        end = planned.planned_until
        considered = [tick for tick in due if mark < tick <= end]
        skipped = [tick for record in planned.skipped for tick in _covered(record, considered)]
        assert [*skipped, *planned.run] == considered
        assert len(planned.skipped) <= RECORDS_MAX
        assert end > mark if more else end == max(mark, now)
        runs += planned.run
        mark = end
    assert runs == _expected_runs(due, misfire, now, catchup, grace)


def _ticks_between(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    ticks: list[datetime] = []
    while (after := schedule.next_after(after)) <= until:
        ticks.append(after)
    return ticks


def _covered(record: SkippedTicks, ticks: list[datetime]) -> list[datetime]:
    covered = [tick for tick in ticks if record.first <= tick <= record.last]
    assert len(covered) == record.count
    assert (covered[0], covered[-1]) == (record.first, record.last)
    return covered


def _expected_runs(
    due: list[datetime], misfire: Misfire, now: datetime, catchup: timedelta, grace: timedelta
) -> list[datetime]:
    match misfire:
        case Misfire.SKIP:
            return [tick for tick in due if now - tick <= grace]
        case Misfire.ALL:
            return [tick for tick in due if now - tick <= max(catchup, grace)]
        case Misfire.ONE:
            return [tick for tick in due[-1:] if now - tick <= max(catchup, grace)]


def test_catching_up_in_slices_ends_where_one_plan_would() -> None:
    schedule = Every(interval=timedelta(seconds=10))
    mark, runs = NOON - HOUR, list[datetime]()
    more = True
    while more:
        planned = plan(schedule, Misfire.ALL, behind=NOON - mark, ticks_max=7)
        runs, mark, more = [*runs, *planned.run], planned.planned_until, planned.more
    assert runs == upcoming(schedule, NOON - HOUR, 360)
    assert mark == NOON
