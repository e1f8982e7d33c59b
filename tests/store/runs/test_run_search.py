"""The search of runs: in bounded steps it finds what a scan finds, each run once; and it goes along indexes."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from support.many_runs import START, add_many_runs
from support.query_plans import Sent, last_sent, plan_of
from support.statement_recorder import recorded
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Outcome, Reason, RunState, Trigger
from tsuzuki.store.runs import run_paths, run_search, runs
from tsuzuki.store.sql.database import Connection, Database

COUNT = 300
MANY = 10_000
HOUR = timedelta(hours=1)

FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "job": {"job_names": {"often"}},
    "rare job": {"job_names": {"seldom"}},
    "job without runs": {"job_names": {"never"}},
    "two jobs": {"job_names": {"often", "seldom"}},
    "one job of two": {"job_name": "seldom", "job_names": {"often", "seldom"}},
    "no job of two": {"job_name": "never", "job_names": {"often", "seldom"}},
    "excluded job": {"excluded_job_names": {"often"}},
    "waiting": {"states": {RunState.PENDING}},
    "live": {"states": {RunState.PENDING, RunState.RUNNING}},
    "failed": {"states": {RunState.FAILED}},
    "ended badly": {"states": {RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELED}},
    "failed or waiting": {"states": {RunState.FAILED, RunState.PENDING}},
    "succeeded": {"states": {RunState.SUCCEEDED}},
    "not succeeded": {"excluded_states": {RunState.SUCCEEDED}},
    "failed of a job": {"states": {RunState.FAILED}, "job_names": {"often"}},
    "waiting of a job": {"states": {RunState.PENDING}, "job_names": {"seldom"}},
    "reason": {"reasons": {Reason.LATE, Reason.TIMEOUT}},
    "one reason": {"reason": Reason.LATE},
    "reason of a job": {"reasons": {Reason.LATE}, "job_names": {"seldom"}},
    "excluded reason": {"excluded_reasons": {Reason.LATE}},
    "worker": {"worker_ids": {"worker-2"}},
    "excluded worker": {"excluded_worker_ids": {"worker-2"}},
    "trigger": {"triggers": {Trigger.RETRY}},
    "excluded trigger": {"excluded_triggers": {Trigger.MANUAL}},
    "key": {"concurrency_key": "key-7"},
    "key of a job": {"concurrency_key": "key-7", "job_names": {"often"}},
    "event": {"event_id": 20},
    "retry": {"retry_of": 13},
    "chain": {"origin_id": 14},
    "created": {
        "created_from": START + timedelta(seconds=100),
        "created_until": START + timedelta(seconds=200),
    },
    "finished": {
        "finished_from": START + timedelta(seconds=100),
        "finished_until": START + timedelta(seconds=200),
    },
    "skipped": {"outcomes": {Outcome.SKIPPED}},
    "canceled": {"outcomes": {Outcome.CANCELED}},
    "skipped or failed": {"outcomes": {Outcome.SKIPPED, Outcome.FAILED}},
    "all but skipped": {"excluded_outcomes": {Outcome.SKIPPED}},
    "canceled, but not skipped": {
        "states": {RunState.CANCELED},
        "excluded_outcomes": {Outcome.SKIPPED},
    },
    "text of a job": {"search": "SELD"},
    "text of a key": {"search": "key-7"},
    "text that is nowhere": {"search": "50%_"},
    "failed and not retried": {"states": {RunState.FAILED}, "is_retried": False},
}


def filter_of(name: str, **page: Any) -> RunFilter:
    given = {k: frozenset(v) if isinstance(v, set) else v for k, v in FILTERS[name].items()}
    return RunFilter(**given, **page)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_search, "LOOKED_MAX", 37)
    monkeypatch.setattr(run_search, "LOOKED_UP_MAX", 5)
    monkeypatch.setattr(run_search, "DISORDER_MAX", 3)
    monkeypatch.setattr(run_paths, "SORTED_MAX", 10)
    monkeypatch.setattr(run_paths, "COMPARED_MAX", 5)


def pages(connection: Connection, wanted: RunFilter) -> Iterator[list[int]]:
    """Until there are no more, as a caller with a cursor reads them."""
    before: int | None = None
    while True:
        found = run_search.search(connection, replace(wanted, before_id=before))
        ids = [run.id for run in found.runs]
        yield ids
        if len(ids) < wanted.limit and found.continue_before is None:
            return
        before = ids[-1] if len(ids) == wanted.limit else found.continue_before


@pytest.mark.usefixtures("small_bounds")
def test_bounded_steps_find_every_run_once(database: Database) -> None:
    add_many_runs(database, COUNT)
    with database.read() as connection:
        for name in FILTERS:
            expected = [run.id for run in runs.find(connection, filter_of(name, limit=COUNT))]
            found = [
                run_id for page in pages(connection, filter_of(name, limit=7)) for run_id in page
            ]
            assert found == expected, name
            counted = run_search.count(connection, filter_of(name), at_most=COUNT)
            assert counted.value == len(expected) or not counted.exact, name
            assert counted.value <= len(expected), name


@pytest.mark.parametrize("limit", [7, COUNT + 1])
@pytest.mark.parametrize("is_bounded", [True, False])
def test_a_page_and_its_count_together_are_those_of_two_questions(
    database: Database, request: pytest.FixtureRequest, *, is_bounded: bool, limit: int
) -> None:
    if is_bounded:
        request.getfixturevalue("small_bounds")
    add_many_runs(database, COUNT)
    with database.read() as connection:
        for name in FILTERS:
            wanted = filter_of(name, limit=limit)
            page, counted = run_search.search_and_count(connection, wanted, at_most=100)
            assert page == run_search.search(connection, wanted), name
            assert counted == run_search.count(connection, wanted, at_most=100), name


def test_what_a_page_has_looked_at_is_not_read_again_for_its_count(database: Database) -> None:
    add_many_runs(database, COUNT)
    with database.read() as connection, last_sent(connection) as sent:
        wanted = filter_of("key", limit=COUNT)
        _, counted = run_search.search_and_count(connection, wanted, at_most=COUNT)
    assert counted.exact
    assert counted.value > 0
    assert not [one for one in sent if "count(" in one.statement]


@pytest.mark.parametrize("name", ["key of a job", "failed", "one reason"])
def test_a_page_of_one_value_passes_none_of_its_newer_and_older_runs(
    database: Database, name: str
) -> None:
    add_many_runs(database, COUNT)
    with database.read() as connection:
        sent = statements_of(connection, filter_of(name, before_id=COUNT - 5))
        along = [one for one in sent if "tsuzuki_job_runs.id DESC" in one.statement]
        assert along
        is_sqlite = connection.dialect.name == "sqlite"
        if not is_sqlite:
            connection.exec_driver_sql("SET enable_seqscan = off")
        bounds = "=? AND id>? AND id<?)" if is_sqlite else "Index Cond: ((ROW("
        for one in along:
            assert bounds in plan_of(connection, one)


def test_within_the_bounds_a_count_is_exact(database: Database) -> None:
    add_many_runs(database, COUNT)
    with database.read() as connection:
        for name in FILTERS:
            expected = runs.count(connection, filter_of(name), at_most=COUNT)
            assert run_search.count(connection, filter_of(name), at_most=COUNT) == (expected, True)
        assert run_search.count(connection, RunFilter(), at_most=10) == (10, False)


def test_a_run_that_ends_between_two_statements_is_not_missed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL each statement has its own snapshot."""
    add_many_runs(database, COUNT)
    seen: list[bool] = []
    real = run_paths.Path.ids

    def noted(path: run_paths.Path, *given: Any, **named: Any) -> Any:
        seen.append(path.is_sorted)
        return real(path, *given, **named)

    monkeypatch.setattr(run_paths.Path, "ids", noted)
    with database.read() as connection:
        run_search.search(connection, filter_of("two jobs"))
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {True, False}


def test_a_run_that_moved_on_or_was_pruned_does_not_end_the_list(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_many_runs(database, COUNT)
    real = runs.get_many
    monkeypatch.setattr(runs, "get_many", lambda *given: real(*given)[1:])
    with database.read() as connection:
        found = run_search.search(connection, filter_of("failed", limit=5))
    assert len(found.runs) == 4
    assert found.continue_before == 220


def test_the_window_of_a_search_costs_one_statement_however_many_runs_there_are(
    database: Database,
) -> None:
    """Each halving was a statement of its own: forty of them for the list of a million runs."""
    add_many_runs(database, COUNT)
    with recorded(database) as sent, database.read() as connection:
        run_search.search(connection, filter_of("all"))
        without = len(sent)
        run_search.search(connection, filter_of("created"))
    assert len(sent) - without <= without + 2


def test_no_search_and_no_count_scans_or_sorts_the_table(database: Database) -> None:
    add_many_runs(database, MANY)
    for name in FILTERS:
        with database.read() as connection:
            sent = statements_of(connection, filter_of(name, before_id=MANY - 5))
            for one in sent:
                if connection.dialect.name != "sqlite":
                    connection.exec_driver_sql("SET enable_seqscan = off")
                plan = plan_of(connection, one)
                assert not refused(plan, one.statement), f"{name}:\n{one.statement}\n{plan}"


def statements_of(connection: Connection, wanted: RunFilter) -> list[Sent]:
    with last_sent(connection) as sent:
        run_search.search(connection, wanted)
        run_search.count(connection, wanted, at_most=50_000)
    # The last statement of a search reads whole rows by their ids.
    return [
        one
        for one in sent
        if "FROM tsuzuki_job_runs" in one.statement and "JOIN" not in one.statement
    ]


def refused(plan: str, statement: str) -> bool:
    """A small set is sorted: it is known to be small, and says so by `id + …`."""
    words = [
        "Seq Scan on tsuzuki_job_runs",
        "SCAN tsuzuki_job_runs\n",
        "Sort",
        "USE TEMP B-TREE FOR ORDER BY",
    ]
    return "tsuzuki_job_runs.id + " not in statement and any(word in plan for word in words)
