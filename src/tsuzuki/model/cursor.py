"""The cursor of a paged collection: where it continues, and whether it is exhausted.

The invariants: `start_index` never moves backwards, and only a valid answer exhausts a cursor: an empty page, or
one that confirms the total. Quotas, limits and errors leave the cursor open where it is.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tsuzuki.model.errors import Conflict


class StopReason(StrEnum):
    """Why a run stopped fetching pages."""

    QUOTA = "quota"
    """The source's quota is used up; continue when it is renewed."""

    MAX_PER_RUN = "max_per_run"
    """This run has reached its own limit."""

    EXHAUSTED = "exhausted"
    """The source has nothing more. The only reason that closes a cursor."""

    ERROR = "error"
    """The source failed; the page will be fetched again."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """The position of one job in one set of queries; `key` is the hash of that set."""

    job_name: str
    key: str
    start_index: int = 0
    is_exhausted: bool = False
    updated_at: datetime

    def __post_init__(self) -> None:
        if self.start_index < 0:
            raise ValueError("start_index must be 0 or more")


def advance(cursor: Cursor, *, returned: int, now: datetime) -> Cursor:
    """The cursor after a valid page of `returned` items; an empty one exhausts it."""
    if returned < 0:
        raise ValueError("a page cannot have fewer than no items")
    if cursor.is_exhausted:
        raise Conflict(
            f"the search of {cursor.job_name} is exhausted at {cursor.start_index}",
            hint="Reset the cursor to collect from the beginning.",
        )
    if returned == 0:
        return exhaust(cursor, now)
    return replace(cursor, start_index=cursor.start_index + returned, updated_at=now)


def exhaust(cursor: Cursor, now: datetime) -> Cursor:
    """The cursor closed at its position: a valid page was empty or has confirmed the total."""
    return replace(cursor, is_exhausted=True, updated_at=now)
