"""The reader answers as the ordinary statements do, on both databases."""

from collections.abc import Iterator

import pytest

from support.factories import WORKER, add_job, add_worker, run_in_state, spec, take_lead
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import RunState
from tsuzuki.store import jobs
from tsuzuki.store.reader.connection import CannotRead
from tsuzuki.store.reader.reader import StoredRows, open_reader
from tsuzuki.store.runs import runs
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database


@pytest.fixture
def rows(database: Database, database_url: str) -> Iterator[StoredRows]:
    """Of a database with a job that has everything, and a run in every state."""
    full = spec(
        "report",
        schedule=parse_schedule({"daily_at": "02:30", "timezone": "Europe/Berlin"}),
        arguments={"month": 11, "名": "続き"},
        tags=frozenset({"mail", "gpu"}),
        timeout_seconds=7.5,
        enabled=False,
    )
    add_job(database, full)
    term = take_lead(database)
    add_worker(database)
    for state in RunState:
        run_in_state(database, state, term)
    with open_reader(database_url) as found:
        yield found


def test_jobs_are_the_same(database: Database, rows: StoredRows) -> None:
    with database.read() as connection:
        assert rows.jobs() == jobs.find(connection)


@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(),
        RunFilter(limit=2),
        RunFilter(before_id=3),
        RunFilter(states=frozenset({RunState.RUNNING})),
        RunFilter(states=frozenset({RunState.FAILED, RunState.SUCCEEDED}), worker_id=WORKER),
        RunFilter(job_name="report"),
    ],
    ids=["all", "two", "before one", "running", "ended on a worker", "of a job"],
)
def test_runs_are_the_same(database: Database, rows: StoredRows, wanted: RunFilter) -> None:
    with database.read() as connection:
        assert rows.runs(wanted) == runs.find(connection, wanted)


def test_a_run_and_its_history_are_the_same(database: Database, rows: StoredRows) -> None:
    with database.read() as connection:
        for run in runs.find(connection, RunFilter()):
            assert rows.run(run.id) == run
            assert rows.history(run.id) == runs.history(connection, run.id)
    assert rows.run(999_999) is None
    assert rows.run_by_key("retry:999999") is None


def test_tables_of_another_revision_cannot_be_read(rows: StoredRows) -> None:
    rows.require_revisions({ENGINE.version_table: ENGINE.newest()})
    with pytest.raises(CannotRead):
        rows.require_revisions({ENGINE.version_table: "9999"})


def test_tables_that_are_not_there_cannot_be_read(rows: StoredRows) -> None:
    with pytest.raises(CannotRead):
        rows.require_revisions({"tsuzuki_schema_version_other": "0001"})
