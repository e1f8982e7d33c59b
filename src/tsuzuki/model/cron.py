"""Cron expressions of five fields, read as Debian's cron reads them.

An expression whose minute or hour field begins with a star follows real time; any other one names
fixed wall times. The arithmetic on the calendar is cronsim's, used on naive wall times only: what a
change of the clock does to them is decided by the law in `wall_time`, for all schedules alike.
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

# By then zones follow the rule they are left with, and any date and weekday meet within half a
# century: what does not come after it never comes again, though it may have come before.
_LAST_RULES = datetime(2040, 1, 1, tzinfo=UTC)
_ANY_WALL = _LAST_RULES.replace(tzinfo=None)


@dataclass(frozen=True, kw_only=True)
class Cron:
    """A cron expression in the wall time of one zone. One that never comes cannot be made."""

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
            raise _never_comes(expression)
        return found

    minute, hour, *_ = expression.split()
    follows_real_time = minute.startswith("*") or hour.startswith("*")
    rule = next_recurring if follows_real_time else next_fixed
    return rule(zone_named(timezone), t, next_wall)


# Definitions are read far more often than they are written.
@lru_cache(maxsize=4096)
def _checked(expression: str, timezone: str) -> str:
    """The expression in its one spelling, proven to be readable and to come in that zone."""
    zone_named(timezone)
    fields = _fields(expression)
    spelling = " ".join(fields)
    try:
        CronSim(spelling, _ANY_WALL)
    except CronSimError as error:
        raise _explained(fields) from error
    _next_after(spelling, timezone, _LAST_RULES)
    return spelling


def _fields(expression: str) -> list[str]:
    text = expression.strip()
    if len(text) > _EXPRESSION_LENGTH_MAX:
        raise ScheduleError(f"a cron expression of {len(text)} characters", hint=_EXAMPLE)
    if text.startswith("@"):
        text = _expanded(text)
    fields = text.upper().split()
    if len(fields) == 6:
        raise ScheduleError(
            f"the cron expression {text!r} has 6 fields",
            hint=f"Seconds are not supported; for less than a minute use every: 30s. {_EXAMPLE}",
        )
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"the cron expression {text!r} has {len(fields)} fields", hint=_EXAMPLE)
    return fields


def _expanded(macro: str) -> str:
    if macro.lower() not in MACROS:
        raise ScheduleError(
            f"{macro!r} is not a cron macro",
            hint=f"{did_you_mean(macro, MACROS)}Known are {', '.join(MACROS)}.",
        )
    return MACROS[macro.lower()]


def _explained(fields: list[str]) -> ScheduleError:
    """Names the field that cannot be read, trying each alone; if all can, the date is no date."""
    for position, (name, field) in enumerate(zip(_FIELDS, fields, strict=True)):
        alone = ["*"] * len(_FIELDS)
        alone[position] = field
        try:
            CronSim(" ".join(alone), _ANY_WALL)
        except CronSimError:
            return ScheduleError(
                f"the cron expression {' '.join(fields)!r} has a bad {name}: {field!r}",
                hint=_EXAMPLE,
            )
    return _never_comes(" ".join(fields))


def _never_comes(expression: str) -> ScheduleError:
    return ScheduleError(
        f"the cron expression {expression!r} never comes",
        hint="No month it names has such a day.",
    )
