"""Overlap: what a new tick does while earlier runs of its job are still unfinished."""

from enum import Enum, StrEnum


class ConcurrencyPolicy(StrEnum):
    """Whether runs of one job may overlap."""

    FORBID = "forbid"
    """A tick that finds the job at its limit is skipped, and the skip is recorded."""

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
