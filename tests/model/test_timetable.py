"""Schedules as values: ticks of `every` and cron, words for people, and the way back from storage."""

import json
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.schedule import (
    AtMinutes,
    AtTimes,
    Cron,
    Every,
    Schedule,
    Weekday,
    parse_schedule,
    upcoming,
)

T = datetime(2026, 3, 4, 10, 3, 20, tzinfo=UTC)

zones = st.sampled_from(["UTC", "Asia/Tokyo", "Europe/Berlin", "Australia/Lord_Howe"])
instants = st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
intervals = st.timedeltas(timedelta(seconds=1), timedelta(days=3660)) | st.integers(1, 10**6).map(
    lambda seconds: timedelta(seconds=seconds)
)
times = st.times().map(lambda moment: moment.replace(microsecond=0))
CRONS = [
    "*/5 * * * *",
    "0 9 * * MON-FRI",
    "15,45 2-5 1,L * *",
    "0 0 LW * *",
    "7 3 * * 5L",
    "0 0 29 2 *",
]
schedules: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Every, interval=intervals, anchor=instants),
    st.builds(
        AtTimes,
        times=st.lists(times, min_size=1, max_size=3).map(tuple),
        days=st.frozensets(st.sampled_from(Weekday), min_size=1),
        timezone=zones,
    ),
    st.builds(
        AtMinutes,
        minutes=st.lists(st.integers(0, 59), min_size=1, max_size=3).map(tuple),
        timezone=zones,
    ),
    st.builds(Cron, expression=st.sampled_from(CRONS), timezone=zones),
)


@settings(max_examples=200)
@given(schedules, zones)
def test_the_mapping_survives_json_and_means_the_same_schedule(
    schedule: Schedule, default_timezone: str
) -> None:
    stored = json.loads(json.dumps(schedule.as_mapping()))
    assert parse_schedule(stored, default_timezone=default_timezone) == schedule


@settings(max_examples=200)
@given(intervals, instants, instants)
def test_every_ticks_at_the_anchor_and_whole_intervals_from_it(
    interval: timedelta, anchor: datetime, asked: datetime
) -> None:
    schedule = Every(interval=interval, anchor=anchor)
    tick = schedule.next_after(asked)
    assert asked < tick <= asked + interval
    assert (tick - anchor) % interval == timedelta(0)
    assert schedule.latest_until(asked) == tick - interval
    assert schedule.next_after(tick) == tick + interval


@settings(max_examples=100)
@given(schedules, instants)
def test_ticks_only_ever_go_forward(schedule: Schedule, asked: datetime) -> None:
    ticks = [asked, *upcoming(schedule, asked, 5)]
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("every 10m", "every 10 minutes"),
        ("every 1m", "every minute"),
        ("every 90m", "every 1 hour 30 minutes"),
        ({"every": 1.5}, "every 1.5 seconds"),
        ({"every": 60.25}, "every 1 minute 0.25 seconds"),
        (
            {"every": "1d", "anchor": "2026-01-01T06:00Z"},
            "every day, starting at 2026-01-01 06:00:00Z",
        ),
        ({"daily_at": "07:00", "timezone": "Asia/Tokyo"}, "at 07:00 every day, Asia/Tokyo"),
        ("daily at 07:00, 12:00, 19:00:05", "at 07:00, 12:00 and 19:00:05 every day, UTC"),
        ("hourly at :15", "at minute 15 of every hour"),
        (
            {"hourly_at_minute": [15, 45], "timezone": "Asia/Kolkata"},
            "at minutes 15 and 45 of every hour, Asia/Kolkata",
        ),
        (
            {"weekdays_at": "09:00", "timezone": "Europe/Berlin"},
            "Monday to Friday at 09:00, Europe/Berlin",
        ),
        ("weekly on thu, mon at 09:00", "every Monday and Thursday at 09:00, UTC"),
        ("0 7 * * *", "at 07:00 every day, UTC"),
    ],
)
def test_a_schedule_describes_itself_in_words(written: object, words: str) -> None:
    assert parse_schedule(written).describe() == words


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("every 90s", {"every": "1m30s"}),
        (
            {"weekly": {"days": ["mon", "tue", "wed", "thu", "fri"], "at": "9:00"}},
            {"weekdays_at": "09:00"},
        ),
        ("weekly on sun at 9:00", {"weekly": {"day": "sunday", "at": "09:00"}}),
        (" 0  9 * * mon ", {"cron": "0 9 * * MON"}),
        ("@YEARLY", {"cron": "0 0 1 1 *"}),
    ],
)
def test_one_meaning_has_one_spelling(written: object, canonical: dict[str, object]) -> None:
    mapping = parse_schedule(written).as_mapping()
    assert mapping == canonical | ({} if "every" in canonical else {"timezone": "UTC"})


def test_a_naive_time_is_a_mistake_of_the_caller() -> None:
    naive = T.replace(tzinfo=None)
    for written in ("every 10m", "daily at 07:00", "hourly at :15", "0 7 * * *"):
        with pytest.raises(ValueError, match="aware"):
            parse_schedule(written).next_after(naive)


def test_values_made_by_hand_are_checked_too() -> None:
    with pytest.raises(ScheduleError):
        AtTimes(times=())
    with pytest.raises(ScheduleError):
        AtMinutes(minutes=(60,))
    with pytest.raises(ScheduleError):
        AtTimes(times=(time(7),), timezone="Mars/Olympus")
    with pytest.raises(ScheduleError):
        Cron(expression="0 0 30 2 *")
