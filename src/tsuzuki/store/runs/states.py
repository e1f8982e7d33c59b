"""Run states as SQL conditions that the partial indexes serve.

Written as literals, not as parameters: a partial index serves only a statement that repeats the index's
own condition, on SQLite to the letter.
"""

from sqlalchemy import ColumnElement, FromClause, and_, literal_column

from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs

WAITING_STATES = (RunState.PENDING, RunState.ORPHANED)
HELD_STATES = (RunState.ASSIGNED, RunState.RUNNING)
_INDEXED = [
    WAITING_STATES,
    HELD_STATES,
    (RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELED),
]
"""The states of each partial index, in its order."""


def in_indexed_state(*states: RunState) -> ColumnElement[bool]:
    """The run is in one of these states; through a partial index, if one covers them all."""
    for covered in _INDEXED:
        if set(states) == set(covered):
            return in_states(covered)
        if set(states) < set(covered):
            return and_(in_states(covered), in_states(states))
    return in_states(states)


def in_states(states: tuple[RunState, ...], *, of: FromClause = job_runs) -> ColumnElement[bool]:
    """The run is in one of these states; no partial index is chosen. `of` is an alias of the runs."""
    names: list[ColumnElement[str]] = [literal_column(f"'{state.value}'") for state in states]
    return of.c.state.in_(names) if len(names) > 1 else of.c.state == names[0]


WAITING = in_indexed_state(*WAITING_STATES)
"""Not assigned: due, or due later."""

HELD = in_indexed_state(*HELD_STATES)
"""Assigned to a worker or running on it."""
