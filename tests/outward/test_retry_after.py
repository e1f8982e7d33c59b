"""How long a server asks to be left alone, whatever it says."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tsuzuki.outward.retry_after import ASKED_MAX_SECONDS, seconds_asked, seconds_until

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
IN_A_MINUTE = format_datetime(NOW + timedelta(minutes=1), usegmt=True)
NONSENSE = [None, "", "soon", "-5", "1.5", "\u0661", "9" * 1000, "Mon, 99 Foo 2026 12:00:00 GMT"]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("99999999", ASKED_MAX_SECONDS),
        (IN_A_MINUTE, 60.0),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0),
        (IN_A_MINUTE.replace(" GMT", ""), 60.0),
    ],
)
def test_a_number_is_seconds_from_now_and_a_date_is_a_date(said: str, seconds: float) -> None:
    assert seconds_asked(said, now=NOW) == seconds


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(str(int(NOW.timestamp()) + 31), 31.0), ("1", 0.0), (IN_A_MINUTE, 60.0)],
)
def test_a_reset_is_a_moment(said: str, seconds: float) -> None:
    assert seconds_until(said, now=NOW) == seconds


@pytest.mark.parametrize("said", NONSENSE)
def test_what_makes_no_sense_asks_for_nothing(said: str | None) -> None:
    assert seconds_asked(said, now=NOW) is None
    assert seconds_until(said, now=NOW) is None
