"""Retry-After: how long a server asks to wait, as a number of seconds or an HTTP date."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

ASKED_MAX_SECONDS = 86_400.0
"""The longest pause that is believed."""


def seconds_asked(said: str | None, *, now: datetime) -> float | None:
    """`Retry-After`: seconds from now, or a date. None if it says nothing that makes sense."""
    number = _number(said)
    return _within(number) if number is not None else _seconds_to_date(said, now)


def seconds_until(said: str | None, *, now: datetime) -> float | None:
    """`RateLimit-Reset` and its like: seconds since 1970, or a date."""
    number = _number(said)
    if number is not None:
        return _within(number - now.timestamp())
    return _seconds_to_date(said, now)


def _number(said: str | None) -> float | None:
    text = (said or "").strip()
    # No moment has more digits; a thousand of them are not a time.
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def _seconds_to_date(said: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(said or "")
    except (ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _within((aware - now).total_seconds())


def _within(seconds: float) -> float:
    return min(max(seconds, 0.0), ASKED_MAX_SECONDS)
