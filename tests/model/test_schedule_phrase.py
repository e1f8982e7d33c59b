"""Schedules that are written as a phrase."""

import pytest

from tsuzuki.model.schedule import parse_schedule


@pytest.mark.parametrize(
    ("phrase", "mapping"),
    [
        ("*/5 * * * *", {"cron": "*/5 * * * *"}),
        ("0 9 * * mon-fri", {"cron": "0 9 * * MON-FRI"}),
        ("@daily", {"cron": "0 0 * * *"}),
        ("every 10m", {"every": "10m"}),
        ("Every 2 hours", {"every": "2h"}),
        ("every minute", {"every": "1m"}),
        ("daily at 07:00", {"daily_at": "07:00"}),
        ("daily at 07:00, 12:00 and 19:00", {"daily_at": ["07:00", "12:00", "19:00"]}),
        ("hourly at :15", {"hourly_at_minute": 15}),
        ("hourly at :15 and :45", {"hourly_at_minute": [15, 45]}),
        ("weekdays at 09:00", {"weekdays_at": "09:00"}),
        ("weekly on monday at 09:00", {"weekly": {"day": "monday", "at": "09:00"}}),
        ("weekly on mon, thu at 09:00", {"weekly": {"days": ["mon", "thu"], "at": "09:00"}}),
    ],
)
def test_a_phrase_means_the_same_as_its_mapping(phrase: str, mapping: object) -> None:
    assert parse_schedule(phrase) == parse_schedule(mapping)
