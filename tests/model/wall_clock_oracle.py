"""Brute force on wall clocks: walks real time minute by minute and reads what the clock shows.

It knows nothing of folds, offsets or patterns; it only looks at a `ZoneInfo`. From 1990 on all
zones keep offsets of whole minutes and change them at whole minutes, so minutes are enough.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
FIRST = datetime(1990, 1, 1, tzinfo=UTC)
LAST = datetime(2038, 1, 1, tzinfo=UTC)
MARGIN = timedelta(hours=26)
"""Longer than any change of any clock: what is due in a window is decided within it."""


class WallClock:
    """What a zone's clock shows in each minute from `start` to `end`, and a margin around."""

    def __init__(self, zone: str, start: datetime, end: datetime) -> None:
        self.start, self.end = start, end
        info = ZoneInfo(zone)
        first = start.replace(second=0, microsecond=0) - MARGIN
        count = (end + MARGIN - first) // MINUTE
        instants = (first + number * MINUTE for number in range(count))
        self.minutes = [(at, at.astimezone(info).replace(tzinfo=None, fold=0)) for at in instants]
        self._showings: dict[datetime, list[datetime]] = {}
        for at, shown in self.minutes:
            self._showings.setdefault(shown, []).append(at)

    def ticks_of_fixed(self, times: Iterable[time], on: Callable[[date], bool]) -> list[datetime]:
        """Once per date and time: when first shown, or right after the gap that swallowed it."""
        first, last = self.minutes[0][1], self.minutes[-1][1]
        day_count = (last.date() - first.date()).days + 1
        dates = [first.date() + timedelta(days=number) for number in range(day_count)]
        walls = [datetime.combine(day, at) for day in dates if on(day) for at in times]
        return self._within({self._due(wall) for wall in walls if first < wall < last})

    def ticks_of_recurring(self, matches: Callable[[datetime], bool]) -> list[datetime]:
        """Every minute at which the clock shows a matching time."""
        return self._within({at for at, shown in self.minutes if matches(shown)})

    def _due(self, wall: datetime) -> datetime:
        if wall in self._showings:
            return min(self._showings[wall])
        (after_gap,) = [
            at for (_, before), (at, after) in pairwise(self.minutes) if before < wall < after
        ]
        return after_gap

    def _within(self, ticks: set[datetime]) -> list[datetime]:
        return sorted(tick for tick in ticks if self.start < tick <= self.end)


@cache
def changes_of_clock(zone: str) -> tuple[datetime, ...]:
    """The minutes from 1990 to 2037 at which the zone's offset changes, found by looking closer."""
    info = ZoneInfo(zone)
    step = timedelta(days=4)
    stretches = pairwise(FIRST + number * step for number in range((LAST - FIRST) // step))
    return tuple(
        _first_minute_of_change(info, start, end)
        for start, end in stretches
        if start.astimezone(info).utcoffset() != end.astimezone(info).utcoffset()
    )


def _first_minute_of_change(info: ZoneInfo, start: datetime, end: datetime) -> datetime:
    changed = end.astimezone(info).utcoffset()
    minutes = range((end - start) // MINUTE + 1)
    return start + MINUTE * bisect_left(
        minutes, True, key=lambda n: (start + n * MINUTE).astimezone(info).utcoffset() == changed
    )
