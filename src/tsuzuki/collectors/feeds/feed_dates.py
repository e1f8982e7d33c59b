"""The times in an entry, as aware UTC. A time that cannot be right counts as none."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

YEAR_MIN = 1990
"""Feeds are younger. An older date, such as 1970, is what a broken clock or an empty field gives."""

AHEAD_MAX = timedelta(days=1)
"""How far a clock or a zone may be wrong. A date further ahead is that of an event, not of an article."""

_DAY = re.compile(
    r"(?P<year>\d{4})\s*[-/.年]\s*(?P<month>\d{1,2})\s*[-/.月]\s*(?P<day>\d{1,2})(?:\s*日)?"
    r"(?:(?:\s*T|\s|(?<=日))\s*(?P<hour>\d{1,2})\s*[:時]\s*(?P<minute>\d{1,2})(?:\s*[:分]\s*(?P<second>\d{1,2}))?)?"
)
_FOREIGN = re.compile(r"\s*(?:\d{4}\s*[/.年]|令和)")
_REIWA = re.compile(r"令和\s*(\d{1,2}|元)\s*年")
_REIWA_YEAR_ZERO = 2018


def published_at(raw: Mapping[str, Any], *, now: datetime) -> datetime | None:
    """When the entry says it was published."""
    return _first(raw, ("published", "created"), now)


def updated_at(raw: Mapping[str, Any], *, now: datetime) -> datetime | None:
    """When the entry says it was changed last."""
    return _first(raw, ("updated",), now)


def _first(raw: Mapping[str, Any], names: tuple[str, ...], now: datetime) -> datetime | None:
    for name in names:
        moment = _from_text(raw.get(name)) or _from_parsed(raw.get(name), raw.get(f"{name}_parsed"))
        if moment is not None and moment.year >= YEAR_MIN and moment <= now + AHEAD_MAX:
            return min(moment, now)
    return None


def _from_parsed(said: Any, parsed: Any) -> datetime | None:
    if isinstance(said, str) and _FOREIGN.match(said):
        return None  # the parser would read the year, and take the rest from today
    try:
        return _moment(parsed[:6]) if parsed else None
    except (ValueError, OverflowError, TypeError):
        return None


def _from_text(said: Any) -> datetime | None:
    """A date in an order that the parser does not know, such as 2026/01/02 03:04. It names no zone: UTC."""
    if not isinstance(said, str) or not _FOREIGN.match(said):
        return None
    found = _DAY.search(_REIWA.sub(_common_era, said))
    if found is None:
        return None
    names = ("year", "month", "day", "hour", "minute", "second")
    try:
        return _moment([int(found[name] or 0) for name in names])
    except ValueError:
        return None


def _common_era(found: re.Match[str]) -> str:
    year = 1 if found[1] == "元" else int(found[1])
    return f"{_REIWA_YEAR_ZERO + year}年"


def _moment(numbers: Sequence[int]) -> datetime:
    year, month, day, hour, minute, second = numbers
    # A leap second is the last one of its minute here.
    return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
