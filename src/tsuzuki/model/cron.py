"""Cron expressions of five fields, with the semantics of Debian's cron.

An expression whose minute or hour field starts with a star follows real time; any other one is of fixed wall
times. The calendar arithmetic is cronsim's, used on naive wall times only: daylight saving time is handled by
the rule in `wall_time`, for all schedules alike.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from cronsim import CronSim, CronSimError

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.model.timetable import require_aware
from tsuzuki.model.wall_time import next_fixed, next_recurring
from tsuzuki.model.zones import zone_named

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}

_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
_EXPRESSION_LENGTH_MAX = 1000
_EXAMPLE = f'Write five fields: {", ".join(_FIELDS)}; as in "0 7 * * 1-5".'

# By then every zone follows its last known rule, and any date and weekday coincide within half a century: an
# expression that is not due after it is never due again, though it may have been before.
_LAST_RULES = datetime(2040, 1, 1, tzinfo=UTC)
_ANY_WALL = _LAST_RULES.replace(tzinfo=None)


@dataclass(frozen=True, kw_only=True)
class Cron:
    """A cron expression in the wall time of one zone. One that is never due is refused."""

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", _checked(self.expression, self.timezone))

    def next_after(self, t: datetime) -> datetime:
        """The first tick strictly after `t`, in UTC."""
        require_aware(t)
        return _next_after(self.expression, self.timezone, t)

    def describe(self) -> str:
        words = CronSim(self.expression, _ANY_WALL).explain()
        return f"{words[0].lower()}{words[1:]}, {self.timezone}"

    def as_mapping(self) -> dict[str, Any]:
        return {"cron": self.expression, "timezone": self.timezone}


def _next_after(expression: str, timezone: str, t: datetime) -> datetime:
    def next_wall(wall: datetime) -> datetime:
        found = next(CronSim(expression, wall), None)
        if found is None:
            raise _never_due(expression)
        return found

    minute, hour, *_ = expression.split()
    follows_real_time = minute.startswith("*") or hour.startswith("*")
    rule = next_recurring if follows_real_time else next_fixed
    return rule(zone_named(timezone), t, next_wall)


# Cached: definitions are read far more often than they are written.
@lru_cache(maxsize=4096)
def _checked(expression: str, timezone: str) -> str:
    """The expression in its canonical form, checked to be valid and to be due some time in that zone."""
    zone_named(timezone)
    fields = _fields(expression)
    canonical = " ".join(fields)
    try:
        CronSim(canonical, _ANY_WALL)
    except CronSimError as error:
        raise _invalid_field(fields) from error
    _next_after(canonical, timezone, _LAST_RULES)
    return canonical


def _fields(expression: str) -> list[str]:
    text = expression.strip()
    if len(text) > _EXPRESSION_LENGTH_MAX:
        raise ScheduleError(f"cron expression too long: {len(text)} characters", hint=_EXAMPLE)
    if text.startswith("@"):
        text = _expanded(text)
    fields = text.upper().split()
    if len(fields) == 6:
        raise ScheduleError(
            f"cron expression {text!r} has 6 fields",
            hint="Seconds are not supported; for intervals below a minute use every: 30s. "
            f"{_EXAMPLE}",
        )
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"cron expression {text!r} has {len(fields)} fields", hint=_EXAMPLE)
    return fields


def _expanded(macro: str) -> str:
    if macro.lower() not in MACROS:
        raise ScheduleError(
            f"unknown cron macro {macro!r}",
            hint=f"{did_you_mean(macro, MACROS)}Known macros: {', '.join(MACROS)}.",
        )
    return MACROS[macro.lower()]


def _invalid_field(fields: list[str]) -> ScheduleError:
    """An error that names the invalid field, by trying each alone; if all are valid, no such date exists."""
    for position, (name, field) in enumerate(zip(_FIELDS, fields, strict=True)):
        alone = ["*"] * len(_FIELDS)
        alone[position] = field
        try:
            CronSim(" ".join(alone), _ANY_WALL)
        except CronSimError:
            return ScheduleError(
                f"cron expression {' '.join(fields)!r} has an invalid {name}: {field!r}",
                hint=_EXAMPLE,
            )
    return _never_due(" ".join(fields))


def _never_due(expression: str) -> ScheduleError:
    return ScheduleError(
        f"cron expression {expression!r} is never due",
        hint="None of its months has such a day.",
    )
