"""Overlap: what a new tick does while earlier runs of its job are still unfinished."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import assert_never


class ConcurrencyPolicy(StrEnum):
    """Whether runs of one job may overlap."""

    FORBID = "forbid"
    """A tick that finds the job at its limit is skipped, and the skip is recorded. Missed ticks are queued if all of
    them are to run (`misfire: all`)."""

    ALLOW = "allow"
    """Every tick becomes a run; a limit only keeps it queued."""

    REPLACE = "replace"
    """A tick that finds the job at its limit cancels the unfinished runs and becomes a run."""


class Overlap(Enum):
    """The decision about one tick."""

    START = "start"
    """Create a run for it; nothing else changes."""

    SKIP = "skip"
    """Record it as skipped (`overlap`)."""

    REPLACE = "replace"
    """Cancel the unfinished runs (`replaced`) and create a run for it."""


def decide_overlap(policy: ConcurrencyPolicy, *, live: int, limit: int | None) -> Overlap:
    """What to do with a tick when `live` runs of the job are unfinished. No limit means one."""
    at_limit = live >= (1 if limit is None else limit)
    if policy is ConcurrencyPolicy.ALLOW or not at_limit:
        return Overlap.START
    return Overlap.SKIP if policy is ConcurrencyPolicy.FORBID else Overlap.REPLACE


@dataclass(kw_only=True)
class DecidedTicks:
    """What becomes of several ticks: those to start, to skip (`overlap`), and those that a later one of them has
    replaced; and whether the runs that were unfinished before them are replaced."""

    start: list[datetime] = field(default_factory=list)
    skip: list[datetime] = field(default_factory=list)
    replaced: list[datetime] = field(default_factory=list)
    replaces_live: bool = False


def decide_ticks(
    ticks: Sequence[datetime],
    policy: ConcurrencyPolicy,
    *,
    live: int,
    limit: int | None,
    queues: bool = False,
) -> DecidedTicks:
    """Decide tick by tick, as if each had come in its time: one that starts is a live run for the next. If the job
    `queues` its ticks, none is skipped under `forbid`: each becomes a run that waits for the ones before it."""
    if queues and policy is ConcurrencyPolicy.FORBID:
        return DecidedTicks(start=[*ticks])
    decided = DecidedTicks()
    for tick in ticks:
        match decide_overlap(policy, live=live, limit=limit):
            case Overlap.START:
                decided.start.append(tick)
                live += 1
            case Overlap.SKIP:
                decided.skip.append(tick)
            case Overlap.REPLACE:
                decided.replaces_live = True
                decided.replaced += decided.start
                decided.start, live = [tick], 1
            case other:
                assert_never(other)
    return decided
