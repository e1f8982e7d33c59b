"""Run states as shown to people: unlike in the database, SKIPPED is separate from CANCELED."""

from collections.abc import Collection
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tsuzuki.model.states import Outcome, RunState

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.explain import Explanation


class ShownState(StrEnum):
    """A state of a run, and what is shown for a skipped one, which is stored as CANCELED."""

    PENDING = "PENDING"
    ASSIGNED = "ASSIGNED"
    RUNNING = "RUNNING"
    ORPHANED = "ORPHANED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELED = "CANCELED"
    SKIPPED = "SKIPPED"


def shown_state(run: "Run | Explanation") -> ShownState:
    return ShownState.SKIPPED if run.outcome is Outcome.SKIPPED else ShownState(run.state)


def in_states(shown: Collection[ShownState]) -> dict[str, Any]:
    """The conditions of a `RunFilter` for runs that are shown in one of these states."""
    both = {ShownState.CANCELED: Outcome.CANCELED, ShownState.SKIPPED: Outcome.SKIPPED}
    stored = {RunState.CANCELED if one is ShownState.SKIPPED else RunState(one) for one in shown}
    unwanted = {outcome for one, outcome in both.items() if one not in shown}
    is_told_apart = len(unwanted) == 1
    return {
        "states": frozenset(stored),
        "excluded_outcomes": frozenset(unwanted if is_told_apart else ()),
    }
