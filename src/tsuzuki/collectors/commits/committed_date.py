"""The date of a commit as it is stored: UTC, ISO-8601 to the second, a year of four digits.

A commit may hold any text as its date. One that cannot be read is stored as the instant that git itself
takes it for, the beginning of 1970; one beyond the year 9999 as the last second of it. Either is noted.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

EARLIEST = "1970-01-01T00:00:00Z"
LATEST = "9999-12-31T23:59:59Z"
SHOWN_CHARACTERS = 40

_DATE = re.compile(
    r"(\d{4,})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|([+-])(\d+):?(\d\d))?"
)


class CommittedDate(NamedTuple):
    stored: str
    note: str | None = None
    """None if the text was a valid date."""


def committed_date(text: object) -> CommittedDate:
    """Read a date; never fails."""
    try:
        return CommittedDate(_utc(datetime.fromisoformat(str(text or ""))))
    except (ValueError, OverflowError):
        stored = _read(str(text or ""))
    return CommittedDate(stored, f"{str(text or '')[:SHOWN_CHARACTERS]!r} stored as {stored}")


def late_date(seconds: str) -> CommittedDate:
    """A date of more seconds than any calendar has."""
    return CommittedDate(LATEST, f"{seconds[:SHOWN_CHARACTERS]!r} stored as {LATEST}")


def _read(text: str) -> str:
    """What can be read of a date that is not valid: the instant survives an offset of any size."""
    found = _DATE.fullmatch(text)
    if found is None:
        return EARLIEST
    year, *parts, sign, hours, minutes = found.groups()
    if len(year) > len("9999"):
        return _read_late(text)
    try:
        moment = datetime(int(year), *map(int, parts), tzinfo=UTC)  # type: ignore[arg-type,misc]  # five numbers
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        return _utc(moment + offset if sign == "-" else moment - offset)
    except (ValueError, OverflowError):
        return EARLIEST


def _read_late(text: str) -> str:
    """A date of the year 10000 or later, which is in 9999 by UTC if its offset leads back over the new year."""
    if not text.startswith("10000-"):
        return LATEST
    as_9600 = _read(text.replace("10000", "9600", 1))  # the same calendar, 400 years before
    return as_9600.replace("9599", "9999", 1) if as_9600.startswith("9599") else LATEST


def _utc(moment: datetime) -> str:
    """Without an offset it is UTC already, also on a machine with another zone."""
    there = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return there.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
