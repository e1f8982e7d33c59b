"""Every move function of the store behind one signature, so that a rule can be tested on all of them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from support.factories import WORKER
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.states import LIVE_STATES, Reason, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves

LONG_AGO = 1000.0
"""Advance the clock by this, and every worker is silent and every assignment stale."""

Mover = Callable[[Connection, Term, RunRef], Any]

MOVERS: dict[str, Mover] = {
    "assign": lambda c, term, run: moves.assign(
        c, term=term, assignments=[moves.Assignment(run=run, worker_id=WORKER)]
    ),
    "assign_and_start": lambda c, term, run: moves.assign_and_start(
        c, term=term, worker_id=WORKER, runs=[run]
    ),
    "orphan": lambda c, term, run: moves.orphan(
        c,
        term=term,
        runs=[run],
        reassign_after_seconds=6.0,
        silent_after_seconds=6.0,
        lost_alone=(),
    ),
    "fail_lost": lambda c, term, run: moves.fail_lost(
        c, term=term, runs=[run], silent_after_seconds=10.0
    ),
    "fail_orphaned": lambda c, term, run: moves.fail_orphaned(
        c, term=term, runs=[run], max_orphans=0
    ),
    "skip": lambda c, term, run: moves.skip(c, term=term, runs=[run], reason=Reason.LATE),
    "replace": lambda c, term, run: moves.replace(c, term=term, runs=[run]),
    "start": lambda c, _term, run: moves.start(c, worker_id=WORKER, runs=[run]),
    "finish": lambda c, term, run: moves.finish(
        c,
        worker_id=WORKER,
        ends=[
            moves.RunEnd(
                run=StartedRun(id=run.id, version=run.version, epoch=term.epoch),
                state=RunState.SUCCEEDED,
            )
        ],
    ),
    "hand_back": lambda c, _term, run: moves.hand_back(c, worker_id=WORKER, runs=[run]),
    "cancel": lambda c, _term, run: moves.cancel(c, operator="operator-1", runs=[run]),
}

BY_LEADER = (
    "assign",
    "assign_and_start",
    "orphan",
    "fail_lost",
    "fail_orphaned",
    "skip",
    "replace",
)
BY_WORKER = ("start", "finish", "hand_back")


def moves_made(name: str) -> int:
    """Number of transitions a function makes at once, from the arrows in its docstring."""
    return getattr(moves, name).__doc__.partition(".")[0].count("->")


def states_taken(name: str) -> frozenset[RunState]:
    """The states from which a function moves: those its docstring names before the arrow."""
    promise = getattr(moves, name).__doc__.partition("->")[0]
    if promise.startswith("Any live run"):
        return LIVE_STATES
    return frozenset(state for state in RunState if state.value in promise)
