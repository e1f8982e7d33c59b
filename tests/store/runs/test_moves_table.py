"""The table of moves, three times over: in the model, in the database's guards, in the functions."""

from inspect import getmembers, isfunction
from itertools import product

import pytest

from support import raw_statements
from support.factories import add_worker, read_run, run_in_state, take_lead
from support.move_functions import LONG_AGO, MOVERS, moves_made, states_taken
from support.moving_clock import MovingClock
from tsuzuki.model.states import (
    LIVE_STATES,
    MOVES,
    MOVES_AT_ONCE,
    Actor,
    RunState,
    may_move,
)
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database


@pytest.mark.parametrize("source", RunState)
def test_the_database_accepts_exactly_the_moves_of_the_table(
    database: Database, source: RunState
) -> None:
    term = take_lead(database)
    add_worker(database)
    accepted, refusals = set(), set()
    for target, actor in product(RunState, Actor):
        run = run_in_state(database, source, term)
        words = raw_statements.answer(database, raw_statements.move(run.id, target, actor))
        if words is None:
            accepted.add((target, actor))
            assert read_run(database, run.id).state is target
        else:
            refusals.add(words)
            assert read_run(database, run.id).version == run.version
    assert accepted == {(t, a) for t, a in product(RunState, Actor) if may_move(source, t, a)}
    assert all(words.startswith("tsuzuki: ") for words in refusals), refusals


@pytest.mark.parametrize("growth", [0, 2, 3])
@pytest.mark.parametrize("source", RunState)
def test_the_database_accepts_two_moves_at_once_only_if_they_are_in_the_table(
    database: Database, source: RunState, growth: int
) -> None:
    term = take_lead(database)
    add_worker(database)
    accepted = set()
    for target, actor in product(RunState, Actor):
        run = run_in_state(database, source, term)
        grown = raw_statements.move(run.id, target, actor, version=job_runs.c.version + growth)
        if target is not source and raw_statements.answer(database, grown) is None:
            accepted.add((target, actor))
    legal = {
        (target, actor)
        for (before, target), actors in MOVES_AT_ONCE.items()
        for actor in actors
        if before is source
    }
    assert accepted == (legal if growth == 2 else set())


@pytest.mark.parametrize("source", sorted(LIVE_STATES))
def test_a_move_without_an_actor_is_refused(database: Database, source: RunState) -> None:
    term = take_lead(database)
    add_worker(database)
    for (_, target), actors in [(pair, MOVES[pair]) for pair in MOVES if pair[0] is source]:
        run = run_in_state(database, source, term)
        unsigned = raw_statements.move(run.id, target, min(actors), moved_as=None)
        assert raw_statements.refusal(database, unsigned).startswith("tsuzuki: this move")
        for missing in ("moved_by", "moved_at"):
            nameless = raw_statements.move(run.id, target, min(actors), **{missing: None})
            words = raw_statements.refusal(database, nameless)
            assert words.startswith("tsuzuki: a move has a time and an actor")
        assert read_run(database, run.id).state is source


def test_every_mover_of_the_store_is_proven_here() -> None:
    movers = {
        name
        for name, function in getmembers(moves, isfunction)
        if function.__module__ == moves.__name__ and not name.startswith("_")
    }
    assert movers == set(MOVERS)


@pytest.mark.parametrize("name", MOVERS)
def test_a_mover_takes_from_exactly_the_states_its_docstring_names(
    database: Database, clock: MovingClock, name: str
) -> None:
    promised = getattr(moves, name).__doc__.partition("->")[2]
    term = take_lead(database)
    add_worker(database)
    runs = {state: run_in_state(database, state, term) for state in RunState}
    clock.advance(LONG_AGO)

    took = set()
    for state, run in runs.items():
        with database.write() as connection:
            if MOVERS[name](connection, term, run):
                took.add(state)

    assert took == states_taken(name)
    for state, run in runs.items():
        now = read_run(database, run.id)
        if state in took:
            assert now.version == run.version + moves_made(name)
            assert now.state.value in promised or "its end" in promised
        else:
            assert (now.state, now.version) == (state, run.version)
