"""Time zones: which are known, and which was meant."""

import pytest

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.schedule import parse_schedule


@pytest.mark.parametrize(
    ("zone", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("tokyo", "Asia/Tokyo"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_a_misspelt_zone_is_refused_with_the_one_meant(zone: str, meant: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule({"daily_at": "07:00", "timezone": zone})
    assert caught.value.specific_code == "timezone"
    assert f'Did you mean "{meant}"?' in (caught.value.hint or "")


@pytest.mark.parametrize("zone", ["", "JST", "../etc/passwd", "Europe", "\0", "x" * 5000, 9])
def test_what_is_no_zone_is_refused(zone: object) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule({"every": "10m", "timezone": zone})
    assert caught.value.specific_code == "timezone"


def test_for_an_abbreviation_no_other_zone_is_proposed() -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule({"daily_at": "07:00", "timezone": "JST"})
    assert "Did you mean" not in (caught.value.hint or "")
