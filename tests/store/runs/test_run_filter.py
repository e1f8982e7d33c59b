"""Lists of runs: every filter, and every filter as an exclusion."""

from datetime import timedelta
from typing import Any

import pytest

from support.factories import (
    add_job,
    add_worker,
    create_run,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from support.moving_clock import MovingClock
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.store import failures
from tsuzuki.store.failures import RunFailure
from tsuzuki.store.runs import run_search, runs
from tsuzuki.store.sql.database import Database


def found(database: Database, **wanted: Any) -> list[int]:
    with database.read() as connection:
        listed = [run.id for run in runs.find(connection, RunFilter(**wanted))]
        assert runs.count(connection, RunFilter(**wanted), at_most=100) == len(listed)
        searched = run_search.search(connection, RunFilter(**wanted))
        assert ([run.id for run in searched.runs], searched.continue_before) == (listed, None)
        page = RunFilter(**{**wanted, "before_id": None})
        counted = run_search.count(connection, page, at_most=100)
        assert counted.exact
        assert "before_id" in wanted or counted.value == len(listed)
    return listed


def test_each_filter_finds_and_excludes(database: Database, clock: MovingClock) -> None:
    one, two = add_job(database, spec("one")), add_job(database, spec("two"))
    manual = create_run(database, one, concurrency_key="eu").id
    clock.advance(60)
    middle = clock.now()
    retry = create_run(database, two, trigger=Trigger.RETRY, retry_of=manual, origin_id=manual).id
    with database.write() as connection:
        failures.note(connection, [RunFailure(retry, "group", two, "it broke")])
    every = [retry, manual]
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({}, every),
        ({"job_names": frozenset({"one"})}, [manual]),
        ({"job_names": frozenset({"one", "two"})}, every),
        ({"excluded_job_names": frozenset({"one"})}, [retry]),
        ({"triggers": frozenset({Trigger.RETRY})}, [retry]),
        ({"excluded_triggers": frozenset({Trigger.RETRY})}, [manual]),
        ({"states": frozenset({RunState.PENDING})}, every),
        ({"excluded_states": frozenset({RunState.PENDING})}, []),
        ({"excluded_states": frozenset(RunState)}, []),
        ({"excluded_reasons": frozenset({Reason.LATE})}, every),
        ({"reasons": frozenset({Reason.LATE})}, []),
        ({"excluded_worker_ids": frozenset({"w"})}, every),
        ({"concurrency_key": "eu"}, [manual]),
        ({"retry_of": manual}, [retry]),
        ({"origin_id": manual}, [retry]),
        ({"event_id": 7}, []),
        ({"failure_group": "group"}, [retry]),
        ({"failure_group": "other"}, []),
        ({"created_from": middle}, [retry]),
        ({"created_until": middle}, [manual]),
        ({"finished_from": middle - timedelta(days=1)}, []),
        ({"before_id": retry}, [manual]),
    ]
    for wanted, expected in cases:
        assert found(database, **wanted) == expected, wanted


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.RUNNING])
def test_a_state_is_found_and_excluded(database: Database, state: RunState) -> None:
    add_worker(database)
    term = take_lead(database)
    run_id = run_in_state(database, state, term).id
    other = create_run(database, read_run(database, run_id).job_definition_id).id
    assert found(database, states=frozenset({state})) == [run_id]
    assert found(database, excluded_states=frozenset({state})) == [other]


def test_a_count_ends_where_it_is_told_to(database: Database) -> None:
    job_id = add_job(database)
    for _ in range(5):
        create_run(database, job_id)
    with database.read() as connection:
        assert runs.count(connection, RunFilter(), at_most=3) == 3
