"""Where runs are in their lives, as conditions for statements that look for them.

Written out, not as parameters: a partial index serves only a statement that says what the index covers, SQLite
even only one that says it in the same words.
"""

from sqlalchemy import ColumnElement, and_, literal_column

from tsuzuki.model.states import RunState
from tsuzuki.store.tables import job_runs

_S = RunState
_INDEXED = [
    (_S.PENDING, _S.ORPHANED),
    (_S.ASSIGNED, _S.RUNNING),
    (_S.FAILED, _S.TIMED_OUT, _S.CANCELED),
]
"""States whose runs have an index of their own, in its words."""


def is_in(*states: RunState) -> ColumnElement[bool]:
    """The run is in one of these states; by an index, if one has them all."""
    for covered in _INDEXED:
        if set(states) == set(covered):
            return among(covered)
        if set(states) < set(covered):
            return and_(among(covered), among(states))
    return among(states)


def among(states: tuple[RunState, ...]) -> ColumnElement[bool]:
    """The run is in one of these states, and no more is said."""
    words: list[ColumnElement[str]] = [literal_column(f"'{state.value}'") for state in states]
    return job_runs.c.state.in_(words) if len(words) > 1 else job_runs.c.state == words[0]


WAITING = is_in(_S.PENDING, _S.ORPHANED)
HELD = is_in(_S.ASSIGNED, _S.RUNNING)
