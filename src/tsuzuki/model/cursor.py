"""Where a paged collection goes on, and when it is over.

The laws: `start_index` never moves backwards, and only a good answer ends a collection: an empty
one, or one that confirms the total. Quotas, limits and errors leave the cursor open where it is.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tsuzuki.model.errors import Conflict


class StopReason(StrEnum):
    """Why a run stopped asking for pages."""

    QUOTA = "quota"
    """The source's allowance is used up; go on when it is renewed."""

    MAX_PER_RUN = "max_per_run"
    """This run has collected as much as it was asked for."""

    EXHAUSTED = "exhausted"
    """The source has nothing more. The only reason that closes a cursor."""

    ERROR = "error"
    """The source failed; the page will be asked for again."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """The place of one job in one set of queries; `key` is the hash of that set."""

    job_name: str
    key: str
    start_index: int = 0
    is_exhausted: bool = False
    updated_at: datetime

    def __post_init__(self) -> None:
        if self.start_index < 0:
            raise ValueError("a collection starts at 0 or later")


def advance(cursor: Cursor, *, returned: int, now: datetime) -> Cursor:
    """The cursor after a good answer of `returned` things; an empty one exhausts it."""
    if returned < 0:
        raise ValueError("a page cannot hold fewer than no things")
    if cursor.is_exhausted:
        raise Conflict(
            f"the collection of {cursor.job_name} is exhausted at {cursor.start_index}",
            hint="Reset the cursor to collect from the beginning.",
        )
    if returned == 0:
        return exhaust(cursor, now)
    return replace(cursor, start_index=cursor.start_index + returned, updated_at=now)


def exhaust(cursor: Cursor, now: datetime) -> Cursor:
    """The cursor closed where it stands: a good answer was empty or has confirmed the total."""
    return replace(cursor, is_exhausted=True, updated_at=now)
