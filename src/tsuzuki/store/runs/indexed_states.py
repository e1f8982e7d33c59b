"""Which states the partial indexes of runs cover: plain facts, for statements of any making."""

from tsuzuki.model.states import RunState

WAITING_STATES = (RunState.PENDING, RunState.ORPHANED)
HELD_STATES = (RunState.ASSIGNED, RunState.RUNNING)
BAD_STATES = (RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELED)
_INDEXED = [WAITING_STATES, HELD_STATES, BAD_STATES]
"""The states of each partial index, in its order."""


def state_lists(*states: RunState) -> list[tuple[RunState, ...]]:
    """The lists of states that a condition names, joined by AND, to mean `states`. If a partial index covers them
    all, its own list comes first: only a statement that repeats it is served by it."""
    for covered in _INDEXED:
        if set(states) == set(covered):
            return [covered]
        if set(states) < set(covered):
            return [covered, states]
    return [states]


def sorted_by_index(states: frozenset[RunState]) -> bool:
    """Whether runs in these states are few and in an index of their own, so that sorting them is cheaper than
    scanning past all ended runs."""
    return bool(states) and states <= set(HELD_STATES)
