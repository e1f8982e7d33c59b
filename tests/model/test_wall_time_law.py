"""The law of daylight saving time, held against brute force in all zones from 1990 to 2037."""

from bisect import bisect_right
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import available_timezones

from hypothesis import given, settings
from hypothesis import strategies as st
from wall_clock_oracle import FIRST, LAST, WallClock, changes_of_clock

from tsuzuki.model.schedule import AtMinutes, AtTimes, Cron, Schedule, Weekday, upcoming

ZONES = sorted(available_timezones())
# The zones whose clocks did the strangest things; a sample of all would meet them too rarely.
STRANGE_ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Goose_Bay",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Antarctica/Vostok",
    "Asia/Beirut",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
]
AROUND = timedelta(hours=30)

LAW = settings(max_examples=80)

zones = st.sampled_from(STRANGE_ZONES) | st.sampled_from(ZONES)
minutes = st.integers(0, 59)
hours = st.integers(0, 23) | st.integers(0, 3)
times_of_day = st.builds(time, hours, minutes)
some_minutes = st.sets(minutes, min_size=1, max_size=4)
some_hours = st.sets(hours, min_size=1, max_size=6)
some_days = st.just(frozenset(Weekday)) | st.frozensets(st.sampled_from(Weekday), min_size=1)


@st.composite
def wall_clocks(draw: st.DrawFn) -> tuple[str, WallClock]:
    """A zone, and what its clock shows around a change, or around any time if it has none."""
    zone = draw(zones)
    changes = changes_of_clock(zone)
    ordinary = st.integers(10, (LAST - FIRST).days - 10).map(
        lambda day: FIRST + timedelta(days=day)
    )
    middle = draw(st.sampled_from(changes) if changes else ordinary)
    return zone, WallClock(zone, middle - AROUND, middle + AROUND)


def hold(schedule: Schedule, clock: WallClock, ticks: list[datetime], data: st.DataObject) -> None:
    """The schedule's ticks are exactly `ticks`, in order, wherever the asking starts."""
    found = upcoming(schedule, clock.start, len(ticks))
    assert found == ticks
    assert all(tick.utcoffset() == timedelta(0) for tick in found)
    assert schedule.next_after(found[-1] if found else clock.start) > clock.end

    span = (clock.end - clock.start) // timedelta(microseconds=1)
    for _ in range(20):
        start = clock.start + timedelta(microseconds=data.draw(st.integers(0, span)))
        position = bisect_right(ticks, start)
        tick = schedule.next_after(start)
        assert tick == ticks[position] if position < len(ticks) else tick > clock.end
    for index, tick in enumerate(ticks[:-1]):
        assert schedule.next_after(tick) == ticks[index + 1]
        assert schedule.next_after(tick - timedelta(microseconds=1)) == tick


@LAW
@given(wall_clocks(), st.sets(times_of_day, min_size=1, max_size=4), some_days, st.data())
def test_a_time_of_day_comes_once_per_date_or_right_after_the_gap(
    zone_and_clock: tuple[str, WallClock],
    times: set[time],
    days: frozenset[Weekday],
    data: st.DataObject,
) -> None:
    zone, clock = zone_and_clock
    schedule = AtTimes(times=tuple(times), days=days, timezone=zone)
    hold(schedule, clock, clock.ticks_of_fixed(times, lambda day: day.weekday() in days), data)


@LAW
@given(wall_clocks(), some_minutes, some_hours, some_days, st.data())
def test_cron_with_fixed_hours_comes_once_per_date_or_right_after_the_gap(
    zone_and_clock: tuple[str, WallClock],
    at_minutes: set[int],
    at_hours: set[int],
    days: frozenset[Weekday],
    data: st.DataObject,
) -> None:
    zone, clock = zone_and_clock
    fields = [_listed(at_minutes), _listed(at_hours), "*", "*", _cron_days(days)]
    times = [time(hour, minute) for hour in at_hours for minute in at_minutes]
    ticks = clock.ticks_of_fixed(times, lambda day: day.weekday() in days)
    hold(Cron(expression=" ".join(fields), timezone=zone), clock, ticks, data)


@LAW
@given(wall_clocks(), some_minutes, st.data())
def test_minutes_of_the_hour_come_in_every_real_hour(
    zone_and_clock: tuple[str, WallClock], at_minutes: set[int], data: st.DataObject
) -> None:
    zone, clock = zone_and_clock
    ticks = clock.ticks_of_recurring(lambda shown: shown.minute in at_minutes)
    hold(AtMinutes(minutes=tuple(at_minutes), timezone=zone), clock, ticks, data)


@LAW
@given(
    wall_clocks(),
    st.integers(5, 59),
    some_hours | st.none(),
    some_days,
    st.data(),
)
def test_cron_with_stars_follows_real_time(
    zone_and_clock: tuple[str, WallClock],
    step: int,
    at_hours: set[int] | None,
    days: frozenset[Weekday],
    data: st.DataObject,
) -> None:
    zone, clock = zone_and_clock
    hour_field = "*" if at_hours is None else _listed(at_hours)
    wanted = _matcher(set(range(0, 60, step)), at_hours or set(range(24)), days)
    schedule = Cron(expression=f"*/{step} {hour_field} * * {_cron_days(days)}", timezone=zone)
    hold(schedule, clock, clock.ticks_of_recurring(wanted), data)


def test_minutes_of_the_hour_are_an_hour_apart_where_clocks_change_by_whole_hours() -> None:
    for zone in ("Europe/Berlin", "America/New_York", "Pacific/Apia"):
        for change in changes_of_clock(zone):
            schedule = AtMinutes(minutes=(15,), timezone=zone)
            ticks = upcoming(schedule, change - timedelta(hours=5), 10)
            assert {later - earlier for earlier, later in pairwise(ticks)} == {timedelta(hours=1)}


def _listed(numbers: set[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))


def _cron_days(days: frozenset[Weekday]) -> str:
    return "*" if len(days) == 7 else _listed({(day + 1) % 7 for day in days})


def _matcher(
    at_minutes: set[int], at_hours: set[int], days: frozenset[Weekday]
) -> Callable[[datetime], bool]:
    return lambda shown: (
        shown.minute in at_minutes and shown.hour in at_hours and _is_on(shown.date(), days)
    )


def _is_on(day: date, days: frozenset[Weekday]) -> bool:
    return day.weekday() in days
