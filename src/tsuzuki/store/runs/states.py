"""Run states as SQL conditions that the partial indexes serve.

Written as literals, not as parameters: a partial index serves only a statement that repeats the index's
own condition, on SQLite to the letter.
"""

from sqlalchemy import ColumnElement, FromClause, and_, literal_column

from tsuzuki.model.states import RunState
from tsuzuki.store.runs.indexed_states import HELD_STATES, WAITING_STATES, state_lists
from tsuzuki.store.schema.tables import job_runs


def in_indexed_state(*states: RunState) -> ColumnElement[bool]:
    """The run is in one of these states; through a partial index, if one covers them all."""
    return and_(*map(in_states, state_lists(*states)))


def in_states(states: tuple[RunState, ...], *, of: FromClause = job_runs) -> ColumnElement[bool]:
    """The run is in one of these states; no partial index is chosen. `of` is an alias of the runs."""
    names: list[ColumnElement[str]] = [literal_column(f"'{state.value}'") for state in states]
    return of.c.state.in_(names) if len(names) > 1 else of.c.state == names[0]


WAITING = in_indexed_state(*WAITING_STATES)
"""Not assigned: due, or due later."""

HELD = in_indexed_state(*HELD_STATES)
"""Assigned to a worker or running on it."""
