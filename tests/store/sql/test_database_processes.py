"""Real processes and threads at one database: every move is accepted once, and none fails."""

from collections import Counter
from itertools import chain

import pytest

from support.concurrent_moves import Accepted, move_at_random, move_at_random_in_process
from support.databases import opened
from support.factories import add_job, add_worker, new_run, take_lead
from support.processes import in_processes
from support.run_counts import count_by_state
from support.threads import at_once
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import FINAL_STATES
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

RUNS = 200
WORKERS = ("host-1-aaaa", "host-2-bbbb")


def prepared(database: Database) -> tuple[Term, list[int]]:
    """A pool of runs, two workers, one term."""
    term = take_lead(database, lease_seconds=600)
    for worker_id in WORKERS:
        add_worker(database, worker_id)
    job_id = add_job(database)
    with database.write() as connection:
        created = runs.create(connection, [new_run(database, job_id) for _ in range(RUNS)])
    return term, [run_id for run_id in created if run_id is not None]


def assert_one_chain_per_run(database: Database, ids: list[int], answers: list[Accepted]) -> None:
    """What all of them had accepted is exactly what the history tells."""
    accepted = Counter(chain.from_iterable(answers))
    assert max(accepted.values()) == 1, "a move was accepted twice"
    told = set()
    with database.read() as connection:
        found = {run.id: run for run in runs.get_many(connection, ids)}
        for run_id in ids:
            history = runs.history(connection, run_id)
            told |= {(run_id, line.version) for line in history}
            assert [line.version for line in history] == list(range(2, found[run_id].version + 1))
            assert sum(line.to_state in FINAL_STATES for line in history) <= 1
    assert told == set(accepted)


@pytest.mark.slow
def test_two_processes_that_move_the_same_runs_never_both_succeed(database_url: str) -> None:
    url = database_url.removesuffix("?synchronous=off")  # as it is by default
    with opened(url) as database:
        term, ids = prepared(database)
        calls = [(url, term, WORKERS, ids, 400, seed) for seed in (1, 2)]
        answers = in_processes(move_at_random_in_process, calls)
        assert all(answers), "one of them did nothing"
        assert_one_chain_per_run(database, ids, answers)


def test_eight_threads_that_move_the_same_runs_never_both_succeed(
    live_database: Database,
) -> None:
    term, ids = prepared(live_database)
    answers = at_once(
        8, lambda number: move_at_random(live_database, term, WORKERS, ids, rounds=40, seed=number)
    )
    assert all(answers)
    assert_one_chain_per_run(live_database, ids, answers)


def test_threads_that_only_read_are_never_in_the_way(live_database: Database) -> None:
    term, ids = prepared(live_database)

    def work(number: int) -> Accepted:
        if number % 2:
            return move_at_random(live_database, term, WORKERS, ids, rounds=25, seed=number)
        for _ in range(25):
            with live_database.read() as connection:
                assert sum(count_by_state(connection).values()) == RUNS
                assert len(runs.find(connection, RunFilter(limit=RUNS))) == RUNS
        return []

    assert_one_chain_per_run(live_database, ids, at_once(8, work))
