"""Schedules: parsing one, and its next ticks.

A schedule is a frozen value with `next_after(t)`, `describe()` and `as_mapping()`; for every one of them
`parse_schedule(s.as_mapping()) == s`. The rule for daylight saving time is in `wall_time`, for all alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, TypeAlias

from tsuzuki.model.cron import Cron
from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.schedule_phrase import mapping_of_phrase
from tsuzuki.model.schedule_words import (
    read_anchor,
    read_days,
    read_interval,
    read_minutes,
    read_times,
)
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.model.timetable import EPOCH, MONDAY_TO_FRIDAY, AtMinutes, AtTimes, Every, Weekday
from tsuzuki.model.zones import zone_named

__all__ = [
    "TRIGGER_KEYS",
    "AtMinutes",
    "AtTimes",
    "Cron",
    "Every",
    "Schedule",
    "UnreadableSchedule",
    "Weekday",
    "parse_schedule",
    "read_stored",
    "upcoming",
]


@dataclass(frozen=True, kw_only=True)
class UnreadableSchedule:
    """A stored schedule that this machine cannot read, because it lacks a time zone for example. Its job is listed and
    its runs are executed as those of any other; only its ticks cannot be computed here. `stored` is kept as it is, so
    that a change of the job does not lose it."""

    stored: Mapping[str, Any] = field(hash=False)
    problem: ScheduleError = field(compare=False)

    def next_after(self, _t: datetime) -> NoReturn:
        raise ScheduleError(self.describe(), hint=self.problem.hint)

    def describe(self) -> str:
        return f"cannot be displayed: {self.problem.message}"

    def as_mapping(self) -> dict[str, Any]:
        return dict(self.stored)


Schedule: TypeAlias = Every | AtTimes | AtMinutes | Cron | UnreadableSchedule

_FORMS = (
    'Valid forms: cron: "*/5 * * * *" · every: 10m · daily_at: "07:00" · '
    'hourly_at_minute: 15 · weekdays_at: "09:00" · weekly: {day: monday, at: '
    '"09:00"}; each can have a timezone.'
)
_WEEKLY_FORM = (
    'Write weekly: {day: monday, at: "09:00"} or weekly: {days: [mon, thu], at: "09:00"}.'
)


def parse_schedule(value: object, *, default_timezone: str = "UTC") -> Schedule:
    """Parse a schedule that is written as a mapping or as a phrase. Raises `ScheduleError`, with a hint.

    A schedule that names no time zone is in `default_timezone`.
    """
    match value:
        case Every() | AtTimes() | AtMinutes() | Cron():
            return value
        case str():
            return _from_mapping(mapping_of_phrase(value), default_timezone)
        case Mapping():
            return _from_mapping(value, default_timezone)
        case _:
            raise ScheduleError(f"{value!r} is not a schedule", hint=_FORMS)


def read_stored(mapping: Mapping[str, Any]) -> Schedule:
    """A schedule as it was stored, perhaps by another machine: what cannot be read here says so itself."""
    try:
        return parse_schedule(mapping)
    except ScheduleError as problem:
        return UnreadableSchedule(stored=mapping, problem=problem)


def upcoming(schedule: Schedule, after: datetime, count: int) -> list[datetime]:
    """The next `count` ticks after `after`, in order."""
    ticks: list[datetime] = []
    for _ in range(count):
        after = schedule.next_after(after)
        ticks.append(after)
    return ticks


def _from_mapping(options: Mapping[Any, Any], default_timezone: str) -> Schedule:
    trigger = _only_trigger(options)
    timezone = options.get("timezone")
    if timezone is not None and not isinstance(timezone, str):
        raise ScheduleError(
            f"unknown time zone {timezone!r}",
            hint="Use a name such as Europe/Berlin, Asia/Tokyo or UTC.",
            code="timezone",
        )
    zone = zone_named(default_timezone if timezone is None else timezone)
    return _TRIGGERS[trigger](options, zone.key)


def _only_trigger(options: Mapping[Any, Any]) -> str:
    """The one trigger key; everything else in the mapping must belong to it."""
    triggers = [key for key in options if key in _TRIGGERS]
    allowed = {*_TRIGGERS, "timezone"} | ({"anchor"} if "every" in triggers else set())
    _refuse_unknown(options, allowed, _FORMS)
    if len(triggers) != 1:
        found = " and ".join(triggers) or "none"
        raise ScheduleError(
            f"a schedule must have exactly one trigger; this one has {found}", hint=_FORMS
        )
    return str(triggers[0])


def _refuse_unknown(options: Mapping[Any, Any], allowed: set[str], hint: str) -> None:
    for key in options:
        if key not in allowed:
            raise ScheduleError(
                f"unknown key {key!r} in a schedule", hint=did_you_mean(str(key), allowed) + hint
            )


def _cron(options: Mapping[Any, Any], timezone: str) -> Schedule:
    expression = options["cron"]
    if not isinstance(expression, str):
        raise ScheduleError(
            f"{expression!r} is not a cron expression", hint='Quote it: cron: "*/5 * * * *".'
        )
    return Cron(expression=expression, timezone=timezone)


def _every(options: Mapping[Any, Any], timezone: str) -> Schedule:
    anchor = options.get("anchor")
    return Every(
        interval=read_interval(options["every"]),
        anchor=EPOCH if anchor is None else read_anchor(anchor, timezone),
    )


def _daily_at(options: Mapping[Any, Any], timezone: str) -> Schedule:
    return AtTimes(times=read_times(options["daily_at"]), timezone=timezone)


def _weekdays_at(options: Mapping[Any, Any], timezone: str) -> Schedule:
    times = read_times(options["weekdays_at"])
    return AtTimes(times=times, days=MONDAY_TO_FRIDAY, timezone=timezone)


def _hourly_at_minute(options: Mapping[Any, Any], timezone: str) -> Schedule:
    return AtMinutes(minutes=read_minutes(options["hourly_at_minute"]), timezone=timezone)


def _weekly(options: Mapping[Any, Any], timezone: str) -> Schedule:
    weekly = options["weekly"]
    if not isinstance(weekly, Mapping):
        raise ScheduleError(f"{weekly!r} is not a mapping of day and time", hint=_WEEKLY_FORM)
    _refuse_unknown(weekly, {"day", "days", "at"}, _WEEKLY_FORM)
    if "at" not in weekly or ("day" in weekly) == ("days" in weekly):
        raise ScheduleError("weekly needs `at`, and either `day` or `days`", hint=_WEEKLY_FORM)
    days = read_days(weekly.get("day", weekly.get("days")))
    return AtTimes(times=read_times(weekly["at"]), days=days, timezone=timezone)


_TRIGGERS: dict[str, Callable[[Mapping[Any, Any], str], Schedule]] = {
    "cron": _cron,
    "every": _every,
    "daily_at": _daily_at,
    "hourly_at_minute": _hourly_at_minute,
    "weekdays_at": _weekdays_at,
    "weekly": _weekly,
}
TRIGGER_KEYS = (*_TRIGGERS, "anchor")
"""Every key of a schedule but the time zone."""
