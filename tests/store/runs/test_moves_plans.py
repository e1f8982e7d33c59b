"""A batch finds its runs by their key, whatever the statistics say and however many runs are over."""

from collections.abc import Callable
from itertools import product

import pytest
from sqlalchemy import Connection, text

from support.dialects import only_on_postgresql
from support.factories import WORKER, add_job, add_worker, new_run, take_lead
from support.query_plans import Sent, generic_ways_to, last_sent, ways_to
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import capacity, moves, ownership, progress, queue, rescue, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Database

FINISHED = 20_000
BY_KEY = {
    "sqlite": "SEARCH tsuzuki_job_runs USING INTEGER PRIMARY KEY (rowid=?)",
    "postgresql": "Index Scan using tsuzuki_pk_job_runs",
}

Batch = Callable[[Connection, Term, list[StartedRun]], object]

SHAPES = [(1, 1), (10, 1), (500, 1), (10, 2), (500, 2)]
"""How many runs, and in how many versions: what varies from row to row decides how a statement is written."""


def refs(batch: list[StartedRun]) -> list[RunRef]:
    return [RunRef(id=run.id, version=run.version) for run in batch]


def started(ids: list[int], versions: int) -> list[StartedRun]:
    return [StartedRun(id=run_id, version=1 + run_id % versions, epoch=1) for run_id in ids]


BATCHES: dict[str, Batch] = {
    "assign": lambda c, term, ids: moves.assign(
        c, term=term, assignments=[Assignment(run=ref, worker_id=WORKER) for ref in refs(ids)]
    ),
    "assign_and_start": lambda c, term, ids: moves.assign_and_start(
        c, term=term, worker_id=WORKER, runs=refs(ids)
    ),
    "start": lambda c, _, ids: moves.start(c, worker_id=WORKER, runs=refs(ids)),
    "finish": lambda c, _, ids: moves.finish(
        c,
        worker_id=WORKER,
        ends=[RunEnd(run=run, state=RunState.SUCCEEDED) for run in ids],
    ),
    "hand_back": lambda c, _, ids: moves.hand_back(c, worker_id=WORKER, runs=refs(ids)),
    "orphan": lambda c, term, ids: moves.orphan(
        c,
        term=term,
        runs=refs(ids),
        reassign_after_seconds=1,
        silent_after_seconds=1,
        lost_alone=(),
    ),
    "fail_lost": lambda c, term, ids: moves.fail_lost(
        c, term=term, runs=refs(ids), silent_after_seconds=1
    ),
    "fail_orphaned": lambda c, term, ids: moves.fail_orphaned(
        c, term=term, runs=refs(ids), max_orphans=5
    ),
    "skip": lambda c, term, ids: moves.skip(c, term=term, runs=refs(ids), reason=Reason.LATE),
    "replace": lambda c, term, ids: moves.replace(c, term=term, runs=refs(ids)),
    "cancel": lambda c, _, ids: moves.cancel(c, operator="me", runs=refs(ids)),
    "report_progress": lambda c, _, ids: progress.report_progress(
        c,
        worker_id=WORKER,
        reports=[
            progress.ProgressReport(run=run, processed=1, total=None, number=1) for run in ids
        ],
    ),
}


def analyze(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("ANALYZE"))


def fill(database: Database, job_id: int) -> None:
    """So many runs that succeeded long ago, in three statements."""
    numbers = (
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {FINISHED})"
        if database.is_sqlite
        else f"WITH n(i) AS (SELECT generate_series(1, {FINISHED}))"
    )
    moment = "'2025-01-01T00:00:00.000000Z'"
    with database.write() as connection:
        connection.execute(
            text(
                "INSERT INTO tsuzuki_job_runs (job_definition_id, state, version, trigger, scheduled_for,"
                " priority, arguments, attempt, retries_used, created_at)"
                f" {numbers} SELECT {job_id}, 'PENDING', 1, 'manual', {moment}, 0, '{{}}', 1, 0,"
                f" {moment} FROM n"
            )
        )
        connection.execute(
            text(
                "UPDATE tsuzuki_job_runs SET state = 'RUNNING', version = 3, assigned_worker_id = 'w',"
                f" assigned_at = {moment}, started_at = {moment}, leader_epoch = 1,"
                f" moved_at = {moment}, moved_as = 'leader', moved_by = 'me', moved_epoch = 1"
            )
        )
        connection.execute(
            text(
                "UPDATE tsuzuki_job_runs SET state = 'SUCCEEDED', version = 4,"
                f" finished_at = {moment}, moved_at = {moment}, moved_as = 'worker'"
            )
        )


@pytest.fixture(params=["never gathered", "from an empty table", "fresh"])
def crowded(request: pytest.FixtureRequest, live_database: Database) -> Database:
    """A database with many finished runs and statistics of some kind."""
    job_id = add_job(live_database)
    if not live_database.is_sqlite:
        with live_database.write() as connection:
            connection.execute(
                text("ALTER TABLE tsuzuki_job_runs SET (autovacuum_enabled = false)")
            )
    if request.param == "from an empty table":
        analyze(live_database)
    fill(live_database, job_id)
    if request.param == "fresh":
        analyze(live_database)
    return live_database


def prepared(database: Database, count: int) -> tuple[Term, list[int]]:
    term = take_lead(database)
    add_worker(database)
    with database.write() as connection:
        (job_id,) = connection.execute(text("SELECT id FROM tsuzuki_job_definitions")).scalars()
        created = runs.create(connection, [new_run(database, job_id) for _ in range(count)])
    return term, [run_id for run_id in created if run_id is not None]


def test_every_batch_finds_its_runs_by_their_key(crowded: Database) -> None:
    term, ids = prepared(crowded, 500)
    dialect = crowded.engine.dialect.name
    for (count, versions), (name, batch) in product(SHAPES, BATCHES.items()):
        with crowded.write() as connection:
            with last_sent(connection) as sent:
                batch(connection, term, started(ids[:count], versions))
            ways = ways_to(connection, "tsuzuki_job_runs", sent[-1])
            assert ways, name
            assert set(ways) == {BY_KEY[dialect]}, (name, count, versions, ways)


@only_on_postgresql
def test_a_plan_that_is_kept_for_any_values_goes_by_the_key_too(crowded: Database) -> None:
    term, ids = prepared(crowded, 10)
    for versions, (name, batch) in product([1, 2], BATCHES.items()):
        with crowded.write() as connection:
            with last_sent(connection) as sent:
                batch(connection, term, started(ids, versions))
            ways = generic_ways_to(connection, "tsuzuki_job_runs", sent[-1])
            assert ways, name
            assert set(ways) == {BY_KEY["postgresql"]}, (name, versions, ways)


IN_ORDER = {
    "sqlite": "SCAN tsuzuki_job_runs USING INDEX tsuzuki_ix_job_runs_due",
    "postgresql": "Index Scan using tsuzuki_ix_job_runs_due",
}


def test_what_waits_is_read_along_the_index_that_has_it_in_order(crowded: Database) -> None:
    prepared(crowded, 2_000)
    in_order = IN_ORDER[crowded.engine.dialect.name]
    with crowded.read() as connection:
        with last_sent(connection) as sent:
            assert len(queue.due_runs(connection, limit=500)) == 500
        assert ways_to(connection, "tsuzuki_job_runs", sent[-1]) == [in_order]
        with last_sent(connection) as sent:
            found = capacity.load_with_first_due(connection, heard_within_seconds=4)
            assert found.due is not None
        assert in_order in ways_to(connection, "tsuzuki_job_runs", sent[-1])


BY_STATE: dict[str, tuple[Callable[[Connection], object], str]] = {
    "what is assigned to a worker": (
        lambda c: ownership.assigned_to_worker(c, worker_id=WORKER, limit=10),
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "what a worker runs": (
        lambda c: ownership.running_on_worker(c, worker_id=WORKER),
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "what needs rescue": (
        lambda c: rescue.lost(c, silent_after_seconds=1),
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "what was assigned and not started": (
        lambda c: rescue.stale_assignments(c, reassign_after_seconds=1, silent_after_seconds=1),
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "what all workers hold": (capacity.held_runs, "tsuzuki_ix_job_runs_assigned_worker_id_state"),
    "what is running": (
        lambda c: runs.find(c, RunFilter(states=frozenset({RunState.RUNNING}))),
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "what was orphaned too often": (
        lambda c: rescue.orphans_at_limit(c, max_orphans=5),
        "tsuzuki_ix_job_runs_state_scheduled_for",
    ),
    "when the next is due": (queue.next_due_at, "tsuzuki_ix_job_runs_state_scheduled_for"),
    "what ended badly": (
        lambda c: runs.find(c, RunFilter(states=frozenset({RunState.FAILED}))),
        "tsuzuki_ix_job_runs_ended_badly",
    ),
}


def test_the_few_are_looked_for_where_only_they_are(crowded: Database) -> None:
    prepared(crowded, 10)
    with crowded.read() as connection:
        for what, (look, index) in BY_STATE.items():
            with last_sent(connection) as sent:
                look(connection)
            ways = ways_to(connection, "tsuzuki_job_runs", sent[-1])
            assert ways, what
            assert all(index in way for way in ways), (what, ways)


MOMENT = "'2030-01-01T00:00:00.000000Z'"
AS_DESIGNED: dict[str, tuple[str, str]] = {
    "what is due": (
        f"SELECT id FROM tsuzuki_job_runs WHERE state = 'PENDING' AND scheduled_for <= {MOMENT}",
        "tsuzuki_ix_job_runs_state_scheduled_for",
    ),
    "what is due first": (
        f"SELECT id FROM tsuzuki_job_runs WHERE state = 'PENDING' AND scheduled_for <= {MOMENT}"
        " ORDER BY scheduled_for LIMIT 100",
        "tsuzuki_ix_job_runs_state_scheduled_for",
    ),
    "what a worker runs": (
        "SELECT id FROM tsuzuki_job_runs WHERE assigned_worker_id = 'w' AND state = 'RUNNING'",
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "what a worker holds": (
        "SELECT id FROM tsuzuki_job_runs WHERE assigned_worker_id = 'w'"
        " AND state IN ('ASSIGNED', 'RUNNING')",
        "tsuzuki_ix_job_runs_assigned_worker_id_state",
    ),
    "recent history": (
        "SELECT id FROM tsuzuki_job_runs WHERE finished_at IS NOT NULL ORDER BY created_at DESC LIMIT 20",
        "tsuzuki_ix_job_runs_created_at",
    ),
}
ONLY_ON_SQLITE = {
    "recent history, with what has not ended": (
        "SELECT id FROM tsuzuki_job_runs ORDER BY created_at DESC LIMIT 20",
        "tsuzuki_ix_job_runs_created_at",
    ),
}


def test_queries_in_the_words_of_the_design_use_its_indexes(crowded: Database) -> None:
    prepared(crowded, 500)
    queries = AS_DESIGNED | (ONLY_ON_SQLITE if crowded.is_sqlite else {})
    with crowded.read() as connection:
        for what, (query, index) in queries.items():
            ways = ways_to(connection, "tsuzuki_job_runs", Sent(query, ()))
            assert len(ways) == 1, (what, ways)
            assert index in ways[0], (what, ways)
