"""Cron expressions: rare days, and how long looking for them takes."""

from datetime import UTC, datetime
from timeit import repeat

import pytest

from tsuzuki.model.schedule import parse_schedule, upcoming

T = datetime(2026, 3, 4, 10, 3, 20, tzinfo=UTC)


def test_rare_days_are_found_across_the_years() -> None:
    leap_days = parse_schedule("0 0 29 2 *")
    assert [tick.year for tick in upcoming(leap_days, T, 3)] == [2028, 2032, 2036]
    # 2100 is no leap year, and leap days fall on the same weekday every 28 years at best.
    sunday_leap_days = parse_schedule("0 0 29 2 */7")
    assert sunday_leap_days.next_after(T) == datetime(2032, 2, 29, tzinfo=UTC)
    after_2088 = sunday_leap_days.next_after(datetime(2088, 3, 1, tzinfo=UTC))
    assert after_2088 == datetime(2128, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("expression", ["* * * * *", "0 7 * * *", "0 0 29 2 *", "30 2 * * MON-FRI"])
def test_asking_is_fast(expression: str) -> None:
    schedule = parse_schedule({"cron": expression, "timezone": "Europe/Berlin"})
    best_seconds = min(repeat(lambda: schedule.next_after(T), number=10, repeat=5)) / 10
    assert best_seconds < 0.005
