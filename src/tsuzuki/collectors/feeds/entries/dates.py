"""The times in an entry, as aware UTC. A time that cannot be right counts as none."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tsuzuki.collectors.feeds.entries.date_zones import ZONE, offset_of

YEAR_MIN = 1990
"""Feeds are younger. An older date, such as 1970, is what a broken clock or an empty field gives."""

AHEAD_MAX = timedelta(days=1)
"""How far a clock or a zone may be wrong. A date further ahead is that of an event, not of an article."""

_TIME = (
    r"(?P<hour>\d{1,2})\s*[:時]\s*(?P<minute>\d{1,2})(?:\s*[:分]\s*(?P<second>\d{1,2})(?:[.,]\d+)?)?[分秒]?"
    r"(?:\s*(?P<half>[ap]m)\b)?"
)
_YEAR_FIRST = re.compile(
    r"\s*(?P<year>\d{4})\s*[-/.年]\s*(?P<month>\d{1,2})\s*[-/.月]\s*(?P<day>\d{1,2})(?:\s*日)?"
    rf"(?:(?:\s*T|\s|(?<=日))\s*{_TIME}\s*(?P<zone>{ZONE})?)?",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(
    r"\s*(?:[A-Za-z]+\.?,?\s+)?(?P<day>\d{1,2})[\s-]+(?P<month>[A-Za-z]{3})[a-z]*\.?[\s-]+(?P<year>\d{4}|\d{2}),?"
    rf"\s+{_TIME}\s*(?P<zone>{ZONE})?",
    re.IGNORECASE,
)
_YEAR_LAST = re.compile(
    rf"\s*[A-Za-z]+\s+(?P<month>[A-Za-z]{{3}})\s+(?P<day>\d{{1,2}})\s+{_TIME}\s+(?P<zone>{ZONE})\s+(?P<year>\d{{4}})",
    re.IGNORECASE,
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_FOREIGN = re.compile(r"\s*(?:\d{4}\s*[/.年]|令和)")
_REIWA = re.compile(r"令和\s*(\d{1,2}|元)\s*年")
_REIWA_YEAR_ZERO = 2018
_LEAP_SECOND = 60
_NAMES = ("year", "month", "day", "hour", "minute", "second")


def published_at(raw: Mapping[str, Any], *, now: datetime, language: str = "") -> datetime | None:
    """When the entry says it was published. `language` is that of the feed, which tells some zones apart."""
    return _first(raw, ("published", "created"), now, language)


def updated_at(raw: Mapping[str, Any], *, now: datetime, language: str = "") -> datetime | None:
    """When the entry says it was changed last."""
    return _first(raw, ("updated",), now, language)


def _first(
    raw: Mapping[str, Any], names: tuple[str, ...], now: datetime, language: str
) -> datetime | None:
    for name in names:
        said = raw.get(name)
        moment = _from_text(said, language) or _from_parsed(said, raw.get(f"{name}_parsed"))
        if moment is not None and moment.year >= YEAR_MIN and moment <= now + AHEAD_MAX:
            return min(moment, now)
    return None


def _from_parsed(said: Any, parsed: Any) -> datetime | None:
    if isinstance(said, str) and _FOREIGN.match(said):
        return None  # the parser would read the year, and take the rest from today
    try:
        return _moment(parsed[:6], timedelta()) if parsed else None
    except (ValueError, OverflowError, TypeError):
        return None


def _from_text(said: Any, language: str) -> datetime | None:
    """A date that the parser does not know, or takes for another one: 2026/01/02 03:04, 3 PM, a leap second, a zone by
    its name or none, which is UTC."""
    if not isinstance(said, str):
        return None
    text = _REIWA.sub(_common_era, said)
    found = _YEAR_FIRST.match(text) or _DAY_FIRST.match(text) or _YEAR_LAST.match(text)
    if found is None or not (_FOREIGN.match(said) or _is_misread(found)):
        return None
    try:
        numbers = [_number(found, name) for name in _NAMES]
        return _moment(numbers, offset_of(found["zone"], language))
    except (ValueError, OverflowError):
        return None


def _is_misread(found: re.Match[str]) -> bool:
    zone = found["zone"]
    is_named = zone is None or (len(zone) > 1 and zone.isalpha())
    return is_named or bool(found["half"]) or _number(found, "second") == _LEAP_SECOND


def _number(found: re.Match[str], name: str) -> int:
    text = found[name] or "0"
    if name == "month" and not text.isdigit():
        return _MONTHS.index(text.lower()) + 1
    if name == "year" and len(text) == 2:
        return int(text) + (2000 if int(text) < YEAR_MIN % 100 else 1900)
    if name == "hour" and found["half"]:
        return int(text) % 12 + (12 if found["half"].lower() == "pm" else 0)
    return int(text)


def _common_era(found: re.Match[str]) -> str:
    year = 1 if found[1] == "元" else int(found[1])
    return f"{_REIWA_YEAR_ZERO + year}年"


def _moment(numbers: Sequence[int], offset: timedelta) -> datetime:
    year, month, day, hour, minute, second = numbers
    # A leap second is the last one of its minute here.
    is_leap = second == _LEAP_SECOND
    local = datetime(year, month, day, hour, minute, 59 if is_leap else second, tzinfo=UTC)
    return local - offset
