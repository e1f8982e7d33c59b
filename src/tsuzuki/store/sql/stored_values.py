"""Times and JSON as both databases store them, for code with and without SQLAlchemy.

SQLite has times as ISO-8601 text of fixed width with `Z`, PostgreSQL as timestamptz; both have JSON as its
canonical text.
"""

from datetime import UTC, datetime
from typing import Any

from tsuzuki.model import jsontext


def to_text(moment: datetime) -> str:
    """The fixed-width text of an aware time, in UTC, to the microsecond."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot be stored")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def from_text(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)


def from_json(text: str | None) -> Any:
    return None if text is None else jsontext.decode(text)
