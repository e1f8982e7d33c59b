"""How a feed fares: whether it answers, and whether it is silent for longer than it used to be.

A feed that fails or falls silent is shown as such and stays; only its server (410) or its owner ends it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed

DATES_MIN = 5
"""Fewer articles make no rhythm."""

GAPS_MISSED = 3
SILENCE_MIN = timedelta(days=3)


class HealthState(StrEnum):
    """How a feed fares."""

    NEW = "new"
    """It has never given a good answer, and none was bad."""

    GOOD = "good"
    FAILING = "failing"
    """Its last answers were bad."""

    SILENT = "silent"
    """It answers, and has had nothing new for too long."""

    ENDED = "ended"
    """Its server says that it is gone for good. It is not asked again."""

    REMOVED = "removed"
    """Its job no longer has it."""


@dataclass(frozen=True, kw_only=True)
class FeedHealth:
    """`since` is when the state began, as far as that is known. `silent_after` is what counts as silence."""

    state: HealthState
    since: datetime | None = None
    silent_after: timedelta | None = None


def health_of(
    feed: StoredFeed, options: FeedOptions | None, dates: Sequence[datetime], *, now: datetime
) -> FeedHealth:
    """`dates` are those of its newest items (`queries.feeds.newest_dates`); no options: the job has no such feed."""
    if options is None or feed.removed_at is not None:
        return FeedHealth(state=HealthState.REMOVED, since=feed.removed_at)
    if feed.ended_at is not None:
        return FeedHealth(state=HealthState.ENDED, since=feed.ended_at)
    if feed.failures:
        return FeedHealth(state=HealthState.FAILING, since=feed.failing_since)
    if feed.good_at is None:
        return FeedHealth(state=HealthState.NEW)
    silence = _silence(options, dates)
    heard_at = feed.new_at or feed.first_good_at
    if silence is not None and heard_at is not None and now - heard_at > silence:
        return FeedHealth(state=HealthState.SILENT, since=heard_at, silent_after=silence)
    return FeedHealth(state=HealthState.GOOD, since=feed.first_good_at, silent_after=silence)


def _silence(options: FeedOptions, dates: Sequence[datetime]) -> timedelta | None:
    """What its options say, else three times the longest gap between its newest articles."""
    if options.silent_after is not None:
        return timedelta(seconds=options.silent_after)
    ordered = sorted(dates)
    if len(ordered) < DATES_MIN:
        return None
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    return max(GAPS_MISSED * max(gaps), SILENCE_MIN)
