"""An upgrade while processes work: those of today, beside those of a version that is one migration later."""

import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from support.daemons import Daemon, Daemons, be_quick, eventually, started_on
from support.databases import opened
from support.later_version import LaterVersion
from support.load import Load
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs
from tsuzuki.store.inspection import inspect_database
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SUCCEEDED = frozenset({RunState.SUCCEEDED})
NEED = 5
"""Runs that show that a worker works."""


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> LaterVersion:
    return LaterVersion(tmp_path_factory.mktemp("later"), before=ENGINE.newest())


def revision(database: Database) -> str:
    with database.read() as connection:
        query = text("SELECT version_num FROM tsuzuki_schema_version_engine")
        return str(connection.execute(query).scalar_one())


def wait_until_it_works(database: Database, worker: Daemon) -> None:
    """Until a worker has ended some runs, whichever version leads."""
    runs = Runs(database=database, actor="test")

    def ended() -> bool:
        found = runs.find(RunFilter(states=SUCCEEDED, limit=100))
        return sum(run.assigned_worker_id == worker.worker_id for run in found) >= NEED

    eventually(ended, what=f"{NEED} runs of {worker.worker_id} to succeed")


def test_old_and_new_processes_work_beside_each_other_on_the_newest_tables(
    later: LaterVersion, empty_database_url: str, tmp_path: Path
) -> None:
    url = empty_database_url
    (tmp_path / "tsuzuki.yaml").write_text(
        "jobs: {}\n"
    )  # `up` makes no SQLite file outside a workspace
    with started_on(url, tmp_path) as old:
        old_leader = old.start("up", "--lead-only")
        old_leader.wait_for("leading")
        change_the_version(old, old_leader, later, url, tmp_path)


def change_the_version(
    old: Daemons, old_leader: Daemon, later: LaterVersion, url: str, folder: Path
) -> None:
    """The old leader made the tables. New processes come, the old ones go, and one comes back."""
    with (
        opened(url) as database,
        started_on(url, folder, inside=later.prefix) as new,
    ):
        assert revision(database) == ENGINE.newest()
        be_quick(database)
        new_worker = new.start("worker")
        new_worker.wait_for("started")
        assert revision(database) == later.revision
        with Load(database, folder) as load:
            wait_until_it_works(database, new_worker)
            old_worker = old.start("worker")
            new_leader = new.start("up", "--lead-only")
            for one in (old_leader, new_worker):
                one.send(signal.SIGTERM)
            assert [old_leader.ended(), new_worker.ended()] == [0, 0]
            new_leader.wait_for("leading")
            wait_until_it_works(database, old_worker)
        load.settle()
        findings = inspect_database(database)
        assert [one.subject for one in findings if not one.is_ok] == ["tables"]  # the new column
        for one in (old_worker, new_leader):
            one.send(signal.SIGTERM)
        assert [old_worker.ended(), new_leader.ended()] == [0, 0]
        assert revision(database) == later.revision
