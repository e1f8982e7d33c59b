"""Schedules other than cron: at an interval, at times of day, at minutes of the hour.

Each is a frozen value that validates itself: its zone exists, its times are sorted and there is at least one.
`parse_schedule` parses `as_mapping` to an equal value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import IntEnum
from typing import Any

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.wall_time import next_fixed, next_recurring
from tsuzuki.model.zones import zone_named

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTERVAL_MIN = timedelta(seconds=1)
INTERVAL_MAX = timedelta(days=3660)

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_UNITS = (
    ("day", _DAY),
    ("hour", _HOUR),
    ("minute", timedelta(minutes=1)),
    ("second", INTERVAL_MIN),
)


class Weekday(IntEnum):
    """Days as `date.weekday` counts them."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


EVERY_DAY = frozenset(Weekday)
MONDAY_TO_FRIDAY = EVERY_DAY - {Weekday.SATURDAY, Weekday.SUNDAY}


def require_aware(instant: datetime) -> None:
    """Refuse a naive time: a bug of the calling code, not a mistake of the user."""
    if instant.tzinfo is None:
        raise ValueError("a schedule takes an aware time")


@dataclass(frozen=True, kw_only=True)
class Every:
    """Fixed points in time: `anchor` plus any whole number of intervals, in real time."""

    interval: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        require_aware(self.anchor)
        if not INTERVAL_MIN <= self.interval <= INTERVAL_MAX:
            raise ScheduleError(
                f"the interval {self.interval} is out of bounds",
                hint="Use an interval from 1s to 3660d.",
            )
        object.__setattr__(self, "anchor", self.anchor.astimezone(UTC))

    def next_after(self, t: datetime) -> datetime:
        """The first tick strictly after `t`, in UTC."""
        require_aware(t)
        return self.anchor + ((t - self.anchor) // self.interval + 1) * self.interval

    def latest_until(self, t: datetime) -> datetime:
        """The last tick not after `t`, in UTC."""
        return self.next_after(t) - self.interval

    def describe(self) -> str:
        counts = _units_of(self.interval)
        words = " ".join(f"{count:g} {unit}{'' if count == 1 else 's'}" for unit, count in counts)
        words = counts[0][0] if len(counts) == 1 and counts[0][1] == 1 else words
        since = "" if self.anchor == EPOCH else f", starting at {self.anchor:%Y-%m-%d %H:%M:%SZ}"
        return f"every {words}{since}"

    def as_mapping(self) -> dict[str, Any]:
        whole = not self.interval.microseconds
        short = "".join(f"{count:g}{unit[0]}" for unit, count in _units_of(self.interval))
        mapping: dict[str, Any] = {"every": short if whole else self.interval.total_seconds()}
        return mapping if self.anchor == EPOCH else mapping | {"anchor": _iso(self.anchor)}


@dataclass(frozen=True, kw_only=True)
class AtTimes:
    """Times of day on some days of the week: fixed wall times of one zone."""

    times: tuple[time, ...]
    days: frozenset[Weekday] = EVERY_DAY
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone_named(self.timezone)
        if not self.times or not self.days:
            raise ScheduleError("a schedule must have at least one time and one day")
        object.__setattr__(self, "times", tuple(sorted(set(self.times))))

    def next_after(self, t: datetime) -> datetime:
        """The first tick strictly after `t`, in UTC."""
        require_aware(t)
        return next_fixed(zone_named(self.timezone), t, self._next_wall)

    def describe(self) -> str:
        at = f"at {_listed([_clock(moment) for moment in self.times])}"
        if self.days == EVERY_DAY:
            return f"{at} every day, {self.timezone}"
        if self.days == MONDAY_TO_FRIDAY:
            return f"Monday to Friday {at}, {self.timezone}"
        return f"every {_listed([name.title() for name in self._day_names])} {at}, {self.timezone}"

    def as_mapping(self) -> dict[str, Any]:
        at = _one_or_list([_clock(moment) for moment in self.times])
        return self._trigger(at) | {"timezone": self.timezone}

    def _trigger(self, at: Any) -> dict[str, Any]:
        if self.days == EVERY_DAY:
            return {"daily_at": at}
        if self.days == MONDAY_TO_FRIDAY:
            return {"weekdays_at": at}
        names = self._day_names
        return {"weekly": ({"day": names[0]} if len(names) == 1 else {"days": names}) | {"at": at}}

    @property
    def _day_names(self) -> list[str]:
        return [day.name.lower() for day in sorted(self.days)]

    def _next_wall(self, wall: datetime) -> datetime:
        dates = (wall.date() + count * _DAY for count in range(8))
        return next(
            candidate
            for date in dates
            if date.weekday() in self.days
            for moment in self.times
            if (candidate := datetime.combine(date, moment)) > wall
        )


@dataclass(frozen=True, kw_only=True)
class AtMinutes:
    """Minutes of every hour that the wall clock of one zone shows, in real time."""

    minutes: tuple[int, ...]
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone_named(self.timezone)
        if not self.minutes or not all(0 <= minute <= 59 for minute in self.minutes):
            raise ScheduleError("minutes of the hour must be numbers from 0 to 59")
        object.__setattr__(self, "minutes", tuple(sorted(set(self.minutes))))

    def next_after(self, t: datetime) -> datetime:
        """The first tick strictly after `t`, in UTC."""
        require_aware(t)
        return next_recurring(zone_named(self.timezone), t, self._next_wall)

    def describe(self) -> str:
        plural = "s" if len(self.minutes) > 1 else ""
        minutes = _listed([str(minute) for minute in self.minutes])
        zone = "" if self.timezone == "UTC" else f", {self.timezone}"
        return f"at minute{plural} {minutes} of every hour{zone}"

    def as_mapping(self) -> dict[str, Any]:
        return {"hourly_at_minute": _one_or_list(self.minutes), "timezone": self.timezone}

    def _next_wall(self, wall: datetime) -> datetime:
        this_hour = wall.replace(minute=0, second=0, microsecond=0)
        return next(
            candidate
            for hour in (this_hour, this_hour + _HOUR)
            for minute in self.minutes
            if (candidate := hour + timedelta(minutes=minute)) > wall
        )


def _units_of(interval: timedelta) -> list[tuple[str, float]]:
    """The interval in days, hours, minutes and seconds; only the seconds may be fractional."""
    counts: list[tuple[str, float]] = []
    for unit, length in _UNITS:
        count, interval = divmod(interval, length)
        if count:
            counts.append((unit, count))
    if interval:
        seconds = counts.pop()[1] if counts and counts[-1][0] == "second" else 0
        counts.append(("second", seconds + interval.total_seconds()))
    return counts


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def _clock(moment: time) -> str:
    return moment.isoformat("seconds" if moment.second else "minutes")


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _one_or_list(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)
