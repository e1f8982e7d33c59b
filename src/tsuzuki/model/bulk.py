"""Bulk actions: one action on every run that a frozen filter matches.

    previewed → confirmed → done
        ↓           ├→ stopped   by an operator; what was done stays done
     expired        └→ failed    the run that carries a retry out failed for good

A preview changes nothing. A confirmed cancel is carried out by the leader, and from its confirmation on no run that it
covers is assigned. A confirmed retry is carried out by a run of the engine. Both go page by page.
"""

from enum import StrEnum

from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, RunState

GROWTH_MAX = 0.1
"""By which part the matched runs may have grown since the preview."""


class BulkVerb(StrEnum):
    CANCEL = "cancel"
    RETRY = "retry"

    @property
    def default_states(self) -> frozenset[RunState]:
        """What it acts on unless told otherwise."""
        if self is BulkVerb.CANCEL:
            return LIVE_STATES
        return frozenset({RunState.FAILED, RunState.TIMED_OUT})

    @property
    def possible_states(self) -> frozenset[RunState]:
        return LIVE_STATES if self is BulkVerb.CANCEL else FINAL_STATES


NOT_STARTED = frozenset({RunState.PENDING, RunState.ASSIGNED, RunState.ORPHANED})


def frozen_states(verb: BulkVerb, wanted: frozenset[RunState]) -> frozenset[RunState]:
    """The states that an action is about. A run that is assigned and has not started counts as PENDING."""
    states = wanted or verb.default_states
    return states | NOT_STARTED if RunState.PENDING in states else states


class BulkState(StrEnum):
    PREVIEWED = "previewed"
    CONFIRMED = "confirmed"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


class BulkResult(StrEnum):
    """What became of one run."""

    CANCELED = "canceled"
    REQUESTED = "requested"
    """Its handler held it in a transaction: it is canceled when that ends, unless it has ended by itself then."""
    RETRIED = "retried"
    ENDED_BEFORE = "ended before"
    """It had ended when its turn came."""
    RETRIED_BEFORE = "retried before"
    """It had a retry already."""


def grew_too_much(*, previewed: int, now: int) -> bool:
    """Whether the matched runs are so many more than at the preview that it has to be made again."""
    return now > previewed + previewed * GROWTH_MAX
