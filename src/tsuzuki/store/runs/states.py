"""Run states as SQL conditions that the partial indexes serve.

Written as literals, not as parameters: a partial index serves only a statement that repeats the index's
own condition, on SQLite to the letter.
"""

from sqlalchemy import ColumnElement, and_, literal_column

from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs

_S = RunState
_INDEXED = [
    (_S.PENDING, _S.ORPHANED),
    (_S.ASSIGNED, _S.RUNNING),
    (_S.FAILED, _S.TIMED_OUT, _S.CANCELED),
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


def in_states(states: tuple[RunState, ...]) -> ColumnElement[bool]:
    """The run is in one of these states, whatever index serves it."""
    names: list[ColumnElement[str]] = [literal_column(f"'{state.value}'") for state in states]
    return job_runs.c.state.in_(names) if len(names) > 1 else job_runs.c.state == names[0]


WAITING = in_indexed_state(_S.PENDING, _S.ORPHANED)
HELD = in_indexed_state(_S.ASSIGNED, _S.RUNNING)
"""Assigned to a worker or running on it."""
