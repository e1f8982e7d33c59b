"""Wall time: known changes of clocks, worked out by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.schedule import parse_schedule, upcoming


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(schedule: object, timezone: str, after: str, count: int) -> list[str]:
    found = upcoming(parse_schedule(schedule, default_timezone=timezone), utc(after), count)
    return [tick.strftime("%m-%d %H:%M") for tick in found]


def test_tokyo_has_no_daylight_saving_time() -> None:
    assert ticks("daily at 07:00", "Asia/Tokyo", "2026-03-28T00:00", 3) == [
        "03-28 22:00",
        "03-29 22:00",
        "03-30 22:00",
    ]


def test_a_time_in_berlins_gap_runs_right_after_it() -> None:
    # 02:00 becomes 03:00 on 29 March 2026, at 01:00 UTC.
    assert ticks("daily at 02:30", "Europe/Berlin", "2026-03-28T00:00", 3) == [
        "03-28 01:30",
        "03-29 01:00",
        "03-30 00:30",
    ]


def test_a_repeated_time_in_berlin_runs_once_at_the_first_showing() -> None:
    # 03:00 becomes 02:00 on 25 October 2026, at 01:00 UTC.
    assert ticks("daily at 02:30", "Europe/Berlin", "2026-10-24T12:00", 2) == [
        "10-25 00:30",
        "10-26 01:30",
    ]


def test_asking_within_the_repeated_hour_never_returns_the_past() -> None:
    schedule = parse_schedule({"daily_at": "02:30", "timezone": "Europe/Berlin"})
    for minute in range(60):
        within_second_pass = utc("2026-10-25T01:00") + timedelta(minutes=minute)
        assert schedule.next_after(within_second_pass) == utc("2026-10-26T01:30")


def test_a_time_in_new_yorks_gap_runs_right_after_it() -> None:
    # 02:00 becomes 03:00 on 8 March 2026, at 07:00 UTC.
    assert ticks("30 2 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "03-08 07:00",
        "03-09 06:30",
    ]


def test_several_times_in_one_gap_are_one_tick() -> None:
    times = ["02:10", "02:40", "03:00"]
    assert ticks({"daily_at": times}, "America/New_York", "2026-03-08T05:00", 2) == [
        "03-08 07:00",
        "03-09 06:10",
    ]


def test_minutes_of_the_hour_run_in_both_repeated_hours() -> None:
    # 02:00 becomes 01:00 in New York on 1 November 2026, at 06:00 UTC.
    assert ticks("hourly at :15", "America/New_York", "2026-11-01T04:30", 4) == [
        "11-01 05:15",
        "11-01 06:15",
        "11-01 07:15",
        "11-01 08:15",
    ]


def test_minutes_of_the_hour_go_on_through_the_gap() -> None:
    assert ticks("hourly at :15", "Europe/Berlin", "2026-03-28T23:30", 3) == [
        "03-29 00:15",
        "03-29 01:15",
        "03-29 02:15",
    ]


def test_starred_minutes_of_a_skipped_hour_do_not_run_that_day() -> None:
    assert ticks("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", 2) == [
        "03-30 00:00",
        "03-30 00:30",
    ]


def test_starred_minutes_of_a_repeated_hour_run_in_both() -> None:
    assert ticks("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 4) == [
        "10-25 00:00",
        "10-25 00:30",
        "10-25 01:00",
        "10-25 01:30",
    ]


def test_lord_howe_moves_its_clock_by_half_an_hour() -> None:
    # 02:00 becomes 02:30 on 4 October 2026, at 15:30 UTC of the day before (+10:30 to +11).
    assert ticks("daily at 02:15", "Australia/Lord_Howe", "2026-10-02T20:00", 2) == [
        "10-03 15:30",
        "10-04 15:15",
    ]
    # 02:00 becomes 01:30 on 5 April 2026, at 15:00 UTC of the day before (+11 to +10:30).
    assert ticks("daily at 01:45", "Australia/Lord_Howe", "2026-04-04T00:00", 2) == [
        "04-04 14:45",
        "04-05 15:15",
    ]
    assert ticks("hourly at :45", "Australia/Lord_Howe", "2026-04-04T13:50", 3) == [
        "04-04 14:45",
        "04-04 15:15",
        "04-04 16:15",
    ]


def test_the_day_apia_left_out_runs_as_the_next_one_starts() -> None:
    # 29 December 2011 24:00 (-10) became 31 December 00:00 (+14), at 10:00 UTC on the 30th.
    assert ticks("daily at 07:00", "Pacific/Apia", "2011-12-29T00:00", 4) == [
        "12-29 17:00",
        "12-30 10:00",
        "12-30 17:00",
        "12-31 17:00",
    ]


def test_a_gap_at_midnight_belongs_to_the_new_day() -> None:
    # São Paulo, 4 November 2018: 00:00 becomes 01:00 at 03:00 UTC.
    assert ticks("daily at 00:00", "America/Sao_Paulo", "2018-11-03T04:00", 2) == [
        "11-04 03:00",
        "11-05 02:00",
    ]
    # Beirut, 29 March 2026: 00:00 becomes 01:00 at 22:00 UTC of the day before.
    assert ticks("0 0 * * 0", "Asia/Beirut", "2026-03-28T00:00", 1) == ["03-28 22:00"]
    # Cairo, 24 April 2026, a Friday: 00:00 becomes 01:00 at 22:00 UTC of the day before.
    assert ticks("weekdays at 00:30", "Africa/Cairo", "2026-04-23T00:00", 2) == [
        "04-23 22:00",
        "04-26 21:30",
    ]


def test_a_clock_put_back_over_midnight_does_not_repeat_the_day() -> None:
    # São Paulo, 18 February 2018: 00:00 becomes 23:00 of the 17th at 02:00 UTC.
    assert ticks({"daily_at": ["00:00", "23:30"]}, "America/Sao_Paulo", "2018-02-17T12:00", 3) == [
        "02-18 01:30",
        "02-18 03:00",
        "02-19 02:30",
    ]


def test_the_zone_the_question_is_asked_in_does_not_matter() -> None:
    schedule = parse_schedule({"daily_at": "07:00", "timezone": "Asia/Tokyo"})
    asked = datetime.fromisoformat("2026-03-01T06:59:59.999999+09:00")
    assert schedule.next_after(asked) == utc("2026-02-28T22:00")
    assert schedule.next_after(asked.astimezone(UTC)) == utc("2026-02-28T22:00")


def test_a_starred_cron_that_always_falls_into_the_gap_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"never due .* Europe/Berlin"):
        parse_schedule({"cron": "*/5 2 * 3 0L", "timezone": "Europe/Berlin"})
