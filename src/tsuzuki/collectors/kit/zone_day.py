"""A day in a time zone, which is 23, 24 or 25 hours long: what a daily allowance is counted by."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, kw_only=True)
class ZoneDay:
    """`name` is its date; it ends with the first moment of the next one."""

    name: str
    ends_at: datetime


def day_of(now: datetime, zone: ZoneInfo) -> ZoneDay:
    """The day that a moment is in."""
    day = now.astimezone(zone).date()
    midnight = datetime.combine(day + timedelta(days=1), time.min, tzinfo=zone)
    return ZoneDay(name=day.isoformat(), ends_at=midnight.astimezone(UTC))
