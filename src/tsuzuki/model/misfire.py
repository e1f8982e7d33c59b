"""Misfires: what to do with ticks that came due while no leader ran.

The invariant of `plan_ticks`: every tick after the old `planned_until`, up to the new one, is either run or
recorded as skipped, exactly once; and `planned_until` never moves backwards, also when the clock does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tsuzuki.model.schedule import Every, Schedule

RECORDS_MAX = 3
"""Up to this many skipped ticks are recorded one by one; more than that as one range."""


class Misfire(StrEnum):
    """What to do about ticks that are already past when they are planned."""

    ONE = "one"
    """Run the newest, if it is within the catch-up window; skip all older ones. After any downtime the job
    runs once and then is back on schedule."""

    SKIP = "skip"
    """Run none that is later than the grace period; wait for the next tick."""

    ALL = "all"
    """Run every tick within the catch-up window, oldest first and one after the other unless they may overlap; skip
    older ones."""


TICKS_COUNTED_MAX = 10_000
"""Ticks of a calendar schedule that are counted one by one: about a second."""


@dataclass(frozen=True, kw_only=True)
class SkippedTicks:
    """`count` consecutive ticks, from `first` to `last`, that are not run."""

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, kw_only=True)
class TickPlan:
    """Which due ticks run and which are skipped. Skipped ticks are always older than those that run.

    `missed`: the ticks that run were not planned in time: several ticks are due at once, or the only one is later than
    the grace period. `more`: further ticks are due, plan again from the new `planned_until`.
    """

    run: tuple[datetime, ...]
    missed: bool
    skipped: tuple[SkippedTicks, ...]
    planned_until: datetime
    more: bool


def plan_ticks(
    schedule: Schedule,
    *,
    planned_until: datetime,
    now: datetime,
    misfire: Misfire,
    catchup_window: timedelta,
    grace: timedelta,
    ticks_max: int = 1000,
) -> TickPlan:
    """Sort the ticks in (planned_until, now] into those that run and those that are skipped.

    At most `ticks_max` are planned one by one, or one more if it is the last; a long stretch of stale ticks of an
    `every` schedule is skipped in one step and does not count.
    """
    if ticks_max < 1:
        raise ValueError("ticks_max must be at least 1, or planning would make no progress")
    # No tick is later than `now - planned_until`, so this bound changes nothing, but keeps
    # `now - lateness_max` within the range of dates.
    lateness_max = min(_lateness_max(misfire, catchup_window, grace), now - planned_until)
    stale_range = _stale_range(schedule, planned_until, now, misfire, lateness_max)
    start = stale_range.last if stale_range else planned_until
    ticks, more = _due(schedule, start, now, ticks_max)
    stale_count = _stale_count(ticks, more, now, misfire, lateness_max)
    run = tuple(ticks[stale_count:])
    return TickPlan(
        run=run,
        missed=bool(stale_range) or len(ticks) > 1 or any(now - tick > grace for tick in run),
        skipped=((stale_range,) if stale_range else ()) + _records(ticks[:stale_count]),
        planned_until=ticks[-1] if more else max(planned_until, now),
        more=more,
    )


def due_range(
    schedule: Schedule, *, planned_until: datetime, until: datetime
) -> SkippedTicks | None:
    """All ticks in (planned_until, until] as one range; None if there are none. Of a calendar schedule at most
    `TICKS_COUNTED_MAX` are counted; with more of them, the range ends at `until`."""
    first = schedule.next_after(planned_until)
    if first > until:
        return None
    if isinstance(schedule, Every):
        last = schedule.latest_until(until)
        return SkippedTicks(first=first, last=last, count=(last - first) // schedule.interval + 1)
    ticks, more = _due(schedule, planned_until, until, TICKS_COUNTED_MAX)
    return SkippedTicks(first=first, last=until if more else ticks[-1], count=len(ticks))


def _lateness_max(misfire: Misfire, catchup_window: timedelta, grace: timedelta) -> timedelta:
    return grace if misfire is Misfire.SKIP else max(catchup_window, grace)


def _due(
    schedule: Schedule, after: datetime, now: datetime, ticks_max: int
) -> tuple[list[datetime], bool]:
    """The oldest due ticks, and whether there are more of them: then at least two, because a tick that is left alone
    would pass for one that is planned in time."""
    ticks: list[datetime] = []
    tick = schedule.next_after(after)
    while tick <= now and len(ticks) < ticks_max:
        ticks.append(tick)
        tick = schedule.next_after(tick)
    if tick <= now and (following := schedule.next_after(tick)) > now:
        ticks.append(tick)
        tick = following
    return ticks, tick <= now


def _stale_count(
    ticks: Sequence[datetime], more: bool, now: datetime, misfire: Misfire, lateness_max: timedelta
) -> int:
    """How many of the ticks, from the oldest on, do not run."""
    too_late = sum(now - tick > lateness_max for tick in ticks)
    if misfire is not Misfire.ONE:
        return too_late
    newer_exists = len(ticks) if more else len(ticks) - 1
    return max(too_late, newer_exists)


def _stale_range(
    schedule: Schedule,
    planned_until: datetime,
    now: datetime,
    misfire: Misfire,
    lateness_max: timedelta,
) -> SkippedTicks | None:
    """The ticks of an `every` schedule that are too old to run, computed instead of iterated.

    To iterate over a year of seconds would take minutes. None if they are few enough to be recorded one by
    one.
    """
    if not isinstance(schedule, Every):
        return None
    oldest_wanted = now - lateness_max
    if misfire is Misfire.ONE:
        oldest_wanted = max(oldest_wanted, schedule.latest_until(now))
    first = schedule.next_after(planned_until)
    last = schedule.latest_until(oldest_wanted - timedelta.resolution)
    count = (last - first) // schedule.interval + 1
    return SkippedTicks(first=first, last=last, count=count) if count > RECORDS_MAX else None


def _records(ticks: Sequence[datetime]) -> tuple[SkippedTicks, ...]:
    if len(ticks) > RECORDS_MAX:
        return (SkippedTicks(first=ticks[0], last=ticks[-1], count=len(ticks)),)
    return tuple(SkippedTicks(first=tick, last=tick, count=1) for tick in ticks)
