"""An item is claimed by one RUNNING run at a time."""

import pytest
from sqlalchemy import BigInteger, Column, MetaData, Table, Text, insert

from support.factories import WORKER, add_worker, run_in_state, take_lead
from tsuzuki.collectors.books.claim import Claims
from tsuzuki.model.states import RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

ITEMS = Table(
    "claimed_items",
    MetaData(),
    Column("name", Text, primary_key=True),
    Column("part", BigInteger, primary_key=True),
    Column("held_by_run", BigInteger),
)
CLAIMS = Claims(ITEMS)
KEY = {"name": "one", "part": 1}


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database, WORKER, capacity=100)
    with database.write() as connection:
        ITEMS.create(connection)
        connection.execute(insert(ITEMS), [KEY, {"name": "one", "part": 2}])
    return take_lead(database)


def take(database: Database, run_id: int) -> int:
    with database.write() as connection:
        return CLAIMS.take(connection, KEY, run_id=run_id)


def test_a_claim_keeps_other_running_runs_away_and_no_other_item(
    database: Database, term: Term
) -> None:
    first = run_in_state(database, RunState.RUNNING, term).id
    second = run_in_state(database, RunState.RUNNING, term).id
    assert take(database, first) == first
    assert take(database, second) == first
    assert take(database, first) == first
    with database.write() as connection:
        assert CLAIMS.is_held_by(connection, KEY, run_id=first)
        assert not CLAIMS.is_held_by(connection, KEY, run_id=second)
        assert CLAIMS.take(connection, {**KEY, "part": 2}, run_id=second) == second


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.FAILED, RunState.ORPHANED])
def test_a_run_that_is_no_longer_running_holds_nothing(
    database: Database, term: Term, state: RunState
) -> None:
    ended = run_in_state(database, state, term).id
    running = run_in_state(database, RunState.RUNNING, term).id
    assert take(database, ended) == ended
    assert take(database, running) == running


def test_what_is_released_may_be_taken(database: Database, term: Term) -> None:
    first = run_in_state(database, RunState.RUNNING, term).id
    second = run_in_state(database, RunState.RUNNING, term).id
    take(database, first)
    with database.write() as connection:
        CLAIMS.release(connection, KEY)
        assert not CLAIMS.is_held_by(connection, KEY, run_id=first)
    assert take(database, second) == second
