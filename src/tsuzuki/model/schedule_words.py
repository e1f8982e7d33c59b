"""Parses the parts of a schedule: intervals, times of day, minutes, days, anchors.

Every function takes an unchecked value from YAML, JSON or Python, and returns a checked one or raises a
`ScheduleError` whose hint shows how to write it.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.model.timetable import Weekday
from tsuzuki.model.wall_time import first_instant
from tsuzuki.model.zones import zone_named

_SECONDS_BY_UNIT = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_AMOUNT = re.compile(r"([0-9]{1,9})\s*([a-z]+)\s*")
_INTERVAL = re.compile(rf"(?:{_AMOUNT.pattern})+")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_INTERVAL_HINT = "Write 30s, 10m, 2h, 1d or 1h30m, or a number of seconds."
_CLOCK_HINT = 'Write "07:00" or "07:00:30" (24-hour clock, in quotes), or a list of such times.'
_MINUTE_HINT = "Write a whole number from 0 to 59, or a list of them."
_DAY_HINT = "Write a day such as monday or mon, or a list of days."
_ANCHOR_HINT = 'Write a time such as "2026-01-01T06:00:00Z".'
_ANCHOR_YEARS = range(1900, 3000)


def read_interval(value: object) -> timedelta:
    """`10m`, `1h30m`, `90` (seconds). The schedule itself checks the bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ScheduleError(f"{value!r} is not an interval", hint=_INTERVAL_HINT)
    seconds = _seconds_in(value.strip().lower()) if isinstance(value, str) else value
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError) as error:
        raise ScheduleError("the interval must be finite", hint=_INTERVAL_HINT) from error


def _seconds_in(text: str) -> int:
    amounts = _AMOUNT.findall(text)
    if not _INTERVAL.fullmatch(text) or any(unit not in _SECONDS_BY_UNIT for _, unit in amounts):
        unit_missing = "Add a unit. " if text.isdecimal() else ""
        raise ScheduleError(f"{text!r} is not an interval", hint=unit_missing + _INTERVAL_HINT)
    return sum(int(count) * _SECONDS_BY_UNIT[unit] for count, unit in amounts)


def read_times(value: object) -> tuple[time, ...]:
    """`"07:00"`, `"07:00:30"`, or a list of them."""
    return tuple(_read_time(one) for one in _each(value, "a time of day", _CLOCK_HINT))


def _read_time(value: object) -> time:
    if not isinstance(value, str):
        raise ScheduleError(f"{value!r} is not a time of day", hint=_unquoted_hint(value))
    match = _CLOCK.fullmatch(value.strip())
    if match is None:
        raise ScheduleError(f"{value!r} is not a time of day", hint=_CLOCK_HINT)
    hour, minute, second = (int(part or 0) for part in match.groups())
    try:
        return time(hour, minute, second)
    except ValueError as error:
        midnight = 'Midnight is "00:00" of the next day. ' if hour == 24 else ""
        raise ScheduleError(
            f"there is no time {value!r} on a clock", hint=midnight + _CLOCK_HINT
        ) from error


def _unquoted_hint(value: object) -> str:
    """YAML reads 7:00 without quotes as the number 420, and 7:00:00 as 25200."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 86400:
        return _CLOCK_HINT
    if value < 24:
        return f'Quote the time: "{value:02}:00".'
    larger, smaller = divmod(value, 60)
    parts = [larger, smaller] if larger < 24 else [*divmod(larger, 60), smaller]
    clock = ":".join(f"{part:02}" for part in parts)
    return f'Quote the time: "{clock}". Without quotes YAML reads it as the number {value}.'


def read_minutes(value: object) -> tuple[int, ...]:
    """Minutes of an hour: one number or a list."""
    return tuple(_read_minute(one) for one in _each(value, "a minute", _MINUTE_HINT))


def _read_minute(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 59:
        raise ScheduleError(f"{value!r} is not a minute of the hour", hint=_MINUTE_HINT)
    return value


def read_days(value: object) -> frozenset[Weekday]:
    """`monday`, `mon`, or a list of such days."""
    return frozenset(_read_day(one) for one in _each(value, "a day", _DAY_HINT))


def _read_day(value: object) -> Weekday:
    if not isinstance(value, str):
        raise ScheduleError(f"{value!r} is not a day of the week", hint=_DAY_HINT)
    word = value.strip().lower()
    for day in Weekday:
        if len(word) >= 3 and day.name.lower().startswith(word):
            return day
    names = [day.name.lower() for day in Weekday]
    raise ScheduleError(
        f"{value!r} is not a day of the week", hint=did_you_mean(word, names) + _DAY_HINT
    )


def read_anchor(value: object, timezone: str) -> datetime:
    """An ISO time, or the datetime that YAML parsed it to; without an offset it is wall time in `timezone`."""
    moment = _read_moment(value)
    if moment.year not in _ANCHOR_YEARS:
        raise ScheduleError(f"the anchor {value!r} is out of range", hint=_ANCHOR_HINT)
    if moment.tzinfo is None:
        return first_instant(zone_named(timezone), moment)
    return moment.astimezone(UTC)


def _read_moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value.isoformat() if isinstance(value, date) else str(value))
    except ValueError as error:
        raise ScheduleError(f"the anchor {value!r} is not a time", hint=_ANCHOR_HINT) from error


def _each(value: object, what: str, hint: str) -> Sequence[object]:
    """One value or a list of values, as a list that is never empty."""
    many = value if isinstance(value, list | tuple) else [value]
    if not many:
        raise ScheduleError(f"the list is empty, but {what} is required", hint=hint)
    return many
