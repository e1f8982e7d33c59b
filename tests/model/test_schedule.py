"""What people may write as a schedule, and what they are told when it is wrong."""

from datetime import UTC, date, datetime, time, timedelta

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
)

MONDAY_TO_FRIDAY = frozenset(list(Weekday)[:5])


@pytest.mark.parametrize(
    ("written", "schedule"),
    [
        ({"cron": "*/5 * * * *"}, Cron(expression="*/5 * * * *")),
        ({"every": "10m"}, Every(interval=timedelta(minutes=10))),
        ({"every": 90}, Every(interval=timedelta(seconds=90))),
        ({"every": 1.5}, Every(interval=timedelta(seconds=1.5))),
        ({"every": "1h30m"}, Every(interval=timedelta(minutes=90))),
        ({"daily_at": "07:00"}, AtTimes(times=(time(7),))),
        ({"daily_at": ["19:00:30", "7:00"]}, AtTimes(times=(time(7), time(19, 0, 30)))),
        ({"hourly_at_minute": 15}, AtMinutes(minutes=(15,))),
        ({"hourly_at_minute": [45, 15, 15]}, AtMinutes(minutes=(15, 45))),
        ({"weekdays_at": "09:00"}, AtTimes(times=(time(9),), days=MONDAY_TO_FRIDAY)),
        (
            {"weekly": {"day": "monday", "at": "09:00"}},
            AtTimes(times=(time(9),), days=frozenset({Weekday.MONDAY})),
        ),
        (
            {"weekly": {"days": ["mon", "THU"], "at": "09:00"}},
            AtTimes(times=(time(9),), days=frozenset({Weekday.MONDAY, Weekday.THURSDAY})),
        ),
        ({"daily_at": "07:00", "timezone": None}, AtTimes(times=(time(7),))),
    ],
)
def test_each_form_of_mapping_is_read(written: object, schedule: Schedule) -> None:
    assert parse_schedule(written) == schedule


def test_a_schedule_without_a_zone_is_in_the_default_zone() -> None:
    phrase = parse_schedule("daily at 07:00", default_timezone="Asia/Tokyo")
    assert phrase == AtTimes(times=(time(7),), timezone="Asia/Tokyo")
    own = {"daily_at": "07:00", "timezone": "Europe/Berlin"}
    assert parse_schedule(own, default_timezone="Asia/Tokyo").as_mapping() == own


def test_a_schedule_is_its_own_reading() -> None:
    schedule = Every(interval=timedelta(minutes=5))
    assert parse_schedule(schedule) is schedule


@pytest.mark.parametrize(
    ("anchor", "instant"),
    [
        ("2026-01-01T06:00:00Z", "2026-01-01T06:00:00+00:00"),
        ("2026-01-01T06:00", "2026-01-01T05:00:00+00:00"),
        (date(2026, 1, 1), "2025-12-31T23:00:00+00:00"),
        (datetime(2026, 1, 1, 6, tzinfo=UTC), "2026-01-01T06:00:00+00:00"),
    ],
)
def test_an_anchor_without_an_offset_is_wall_time_of_the_zone(anchor: object, instant: str) -> None:
    written = {"every": "1h", "anchor": anchor, "timezone": "Europe/Berlin"}
    expected = Every(interval=timedelta(hours=1), anchor=datetime.fromisoformat(instant))
    assert parse_schedule(written) == expected


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ({}, "this one has none", "Valid forms"),
        ({"every": "1m", "cron": "* * * * *"}, "every and cron", "Valid forms"),
        ({"evry": "1m"}, "unknown key 'evry'", 'Did you mean "every"'),
        (
            {"daily_at": "07:00", "timezon": "UTC"},
            "unknown key 'timezon'",
            'Did you mean "timezone"',
        ),
        ({"daily_at": "07:00", "anchor": "2026-01-01"}, "unknown key 'anchor'", "Valid forms"),
        ({1: 2}, "unknown key 1", "Valid forms"),
        (None, "None is not a schedule", "Valid forms"),
        (["07:00"], "is not a schedule", "Valid forms"),
        ("", "cannot parse", "cron expression"),
        ("dayly at 07:00", "cannot parse", 'Did you mean "daily"'),
        ("every monday at 09:00", "cannot parse", "weekly on monday at 09:00"),
        ("hourly at 15", "cannot parse", "hourly at :15"),
        ("every 10", "not an interval", "Add a unit"),
        ({"every": "10x"}, "not an interval", "1h30m"),
        ({"every": True}, "not an interval", "1h30m"),
        ({"every": None}, "not an interval", "1h30m"),
        ({"every": float("nan")}, "must be finite", "1h30m"),
        ({"every": 10**400}, "must be finite", "1h30m"),
        ({"every": "999999999d999999999d"}, "must be finite", "1h30m"),
        ({"every": 0.5}, "out of bounds", "from 1s to 3660d"),
        ({"every": "0s"}, "out of bounds", "from 1s to 3660d"),
        ({"every": "999999999d"}, "out of bounds", "from 1s to 3660d"),
        ({"every": "1m", "anchor": "noon"}, "not a time", "2026-01-01T06:00:00Z"),
        ({"every": "1m", "anchor": 5}, "not a time", "2026-01-01T06:00:00Z"),
        ({"every": "1m", "anchor": "0001-01-01"}, "out of range", "2026-01-01T06:00:00Z"),
        ({"daily_at": "7"}, "not a time of day", '"07:00"'),
        ({"daily_at": "24:00"}, "no time '24:00'", 'Midnight is "00:00"'),
        ({"daily_at": "07:60"}, "no time '07:60'", '"07:00"'),
        ({"daily_at": []}, "list is empty", '"07:00"'),
        ({"daily_at": True}, "not a time of day", '"07:00"'),
        ({"hourly_at_minute": 60}, "not a minute", "0 to 59"),
        ({"hourly_at_minute": "15"}, "not a minute", "0 to 59"),
        ({"weekly": "monday"}, "mapping of day and time", "day: monday"),
        ({"weekly": {"day": "monday"}}, "needs `at`", "day: monday"),
        ({"weekly": {"day": "mon", "days": ["tue"], "at": "9:00"}}, "either `day`", "day: monday"),
        ({"weekly": {"dya": "mon", "at": "9:00"}}, "unknown key 'dya'", 'Did you mean "day"'),
        ({"weekly": {"day": "munday", "at": "9:00"}}, "not a day", 'Did you mean "monday"'),
        ({"weekly": {"day": 1, "at": "9:00"}}, "not a day", "monday or mon"),
        ({"cron": 5}, "not a cron expression", "Quote it"),
        ("* * * *", "has 4 fields", "five fields"),
        ("0 * * * * *", "has 6 fields", "Seconds are not supported"),
        ("0 25 * * *", "invalid hour: '25'", "five fields"),
        ("0 0 * * FUN", "invalid day of the week: 'FUN'", "five fields"),
        ("@dayly", "unknown cron macro", 'Did you mean "@daily"'),
        ("0 0 30 2 *", "never due", "None of its months"),
        ("0 0 31 4,6,9,11 *", "never due", "None of its months"),
        ("1" * 5000 + " * * * *", "5008 characters", "five fields"),
    ],
)
def test_a_mistake_is_named_and_the_right_way_shown(
    written: object, message: str, hint: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(written)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.specific_code == "schedule"


@pytest.mark.parametrize(
    ("number", "meant"),
    [(420, "07:00"), (7, "07:00"), (25200, "07:00:00"), (1170, "19:30"), (60, "01:00")],
)
def test_a_time_that_yaml_took_for_a_number_is_to_be_quoted(number: int, meant: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule({"daily_at": number})
    assert f'Quote the time: "{meant}"' in (caught.value.hint or "")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
keys = st.sampled_from(
    ["cron", "every", "daily_at", "hourly_at_minute", "weekdays_at", "weekly", "timezone", "anchor"]
)


@settings(max_examples=300)
@given(junk | st.dictionaries(keys, junk, max_size=3))
def test_whatever_is_written_is_a_schedule_or_a_schedule_error(written: object) -> None:
    try:
        schedule = parse_schedule(written)
    except ScheduleError:
        return
    assert parse_schedule(schedule.as_mapping()) == schedule
