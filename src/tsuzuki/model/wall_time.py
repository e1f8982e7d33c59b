"""Wall time of a zone, and the one rule for daylight saving time (DST).

A *fixed* wall time is due at the first instant at which the zone's wall clock shows it or has already passed it.
On most days that is the time itself; in the gap of a clock set forward it is the first instant after the gap;
when a clock set back shows a time twice (the fold) it is the first of the two.

A *recurring* wall time follows real time: it is due at every instant at which the wall clock shows it, so twice
when it is shown twice, and never when it falls into a gap.

Either way the due instants are a set that depends on the zone and the pattern alone. The next one after an
instant is the least of the set after it: the answer does not depend on earlier calls.

Wall times are naive datetimes here, instants are aware and in UTC. A pattern of wall times is a
function from a wall time to the next one of the pattern strictly after it.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tsuzuki.model.errors import ScheduleError

NextWall = Callable[[datetime], datetime]

_JUST = timedelta.resolution
_SECOND = timedelta(seconds=1)
_GAPS_MAX = 100


def next_fixed(zone: ZoneInfo, after: datetime, next_wall: NextWall) -> datetime:
    """The next instant at which a fixed wall time of the pattern is due."""
    return first_instant(zone, next_wall(_furthest_wall(zone, after)))


def next_recurring(zone: ZoneInfo, after: datetime, next_wall: NextWall) -> datetime:
    """The next instant at which the wall clock shows a time of the pattern."""
    first_showing = _next_first_showing(zone, _furthest_wall(zone, after), next_wall)
    second_showing = _next_second_showing(zone, after, next_wall)
    return min(first_showing, second_showing) if second_showing else first_showing


def first_instant(zone: ZoneInfo, wall: datetime) -> datetime:
    """The first instant at which the wall clock shows `wall` or has already passed it."""
    by_old, by_new = _readings(zone, wall)
    return by_old if by_old <= by_new else _change(zone, by_new, by_old)


class _Repeated(NamedTuple):
    """The wall times [begin, end) that a clock set back shows twice: the fold."""

    begin: datetime
    end: datetime


def _readings(zone: ZoneInfo, wall: datetime) -> tuple[datetime, datetime]:
    """`wall` by the old offset and by the new offset of the clock change around it.

    The same instant twice if there is no change; the second is later in a fold (the time is shown twice), and
    earlier in a gap (the time is never shown).
    """
    return (
        wall.replace(tzinfo=zone, fold=0).astimezone(UTC),
        wall.replace(tzinfo=zone, fold=1).astimezone(UTC),
    )


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The instant in (before, after] at which the clock changes, by bisection: there is one change between."""
    # Clocks change at whole seconds, so bisection over seconds finds the exact one.
    low, high = before.replace(microsecond=0), after.replace(microsecond=0)
    offset = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high


def _repeated_around(zone: ZoneInfo, wall: datetime) -> _Repeated | None:
    """The repeated wall times that `wall` is one of; None if it is shown once or never."""
    first, second = _readings(zone, wall)
    if first >= second:
        return None
    change = _change(zone, first, second)
    return _Repeated(begin=_wall(zone, change), end=wall + (change - first))


def _furthest_wall(zone: ZoneInfo, instant: datetime) -> datetime:
    """The latest wall time the clock has shown up to `instant`; all fixed times up to it are past."""
    wall = _wall(zone, instant)
    repeated = _repeated_around(zone, wall) if wall.fold else None
    return repeated.end - _JUST if repeated else wall


def _wall(zone: ZoneInfo, instant: datetime) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def _next_first_showing(zone: ZoneInfo, wall: datetime, next_wall: NextWall) -> datetime:
    for _ in range(_GAPS_MAX):
        candidate = next_wall(wall)
        by_old, by_new = _readings(zone, candidate)
        if by_old <= by_new:
            return by_old
        wall = _wall(zone, _change(zone, by_new, by_old)) - _JUST
    raise ScheduleError(
        f"the schedule is never due because all its times fall into a DST gap of {zone.key}",
        hint="Choose an hour that exists on the days when the clock is set forward.",
    )


def _next_second_showing(zone: ZoneInfo, after: datetime, next_wall: NextWall) -> datetime | None:
    """The next time of the pattern that the clock shows for the second time.

    Only the clock change around `after` matters: a later fold starts with its first showings, and those come
    earlier.
    """
    wall = _wall(zone, after)
    repeated = _repeated_around(zone, wall)
    if repeated is None:
        return None
    candidate = next_wall(wall if wall.fold else repeated.begin - _JUST)
    return _readings(zone, candidate)[1] if candidate < repeated.end else None
