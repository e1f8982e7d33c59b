"""Handlers that keep their transaction open on SQLite, and with it the write lock: all other runs survive."""

from pathlib import Path

import pytest
from sqlalchemy import text

from processes.test_dying import add_command, started
from support.daemons import QUICK, TIMEOUT_SECONDS, Daemon, Daemons, be_quick, eventually
from support.dialects import only_on_sqlite
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = [pytest.mark.slow, only_on_sqlite]

HANDLER = """
import pathlib, time
from sqlalchemy import text

def add(connection, run):
    connection.execute(text("INSERT INTO imported VALUES (:id)"), {"id": run.id})

def wait(run):
    pathlib.Path(f"inside-{run.id}").touch()
    while not pathlib.Path(f"release-{run.id}").exists():
        time.sleep(0.05)

def importing(run):
    with run.transaction() as connection:
        add(connection, run)
        wait(run)

def copying(run):
    with run.transaction() as connection:
        add(connection, run)
        for _row in connection.execute(text("SELECT n FROM numbers")):
            wait(run)
        add(connection, run)
"""

SETTINGS = EngineSettings(**QUICK)  # type: ignore[arg-type] -- all of them are numbers
BOUND_SECONDS = 6.0
"""Longer than a worker may be silent, and than it takes until a holder is named."""


@pytest.fixture
def held(quick_database: Database, tmp_path: Path) -> Database:
    """With jobs whose handlers keep the lock until they are released, and one that runs until all are."""
    (tmp_path / "lock_handler.py").write_text(HANDLER)
    with quick_database.write() as connection:
        connection.execute(text("CREATE TABLE imported (run_id BIGINT)"))
        connection.execute(text("CREATE TABLE numbers (n INTEGER)"))
        connection.execute(text("INSERT INTO numbers VALUES (1), (2), (3)"))
    for name in ("importing", "copying"):
        options = {"function": f"lock_handler:{name}"}
        add_job(quick_database, spec(name, handler="python", options=options))
    add_command(quick_database, "lasting", f"while ! test -e {tmp_path}/end; do sleep 0.1; done")
    add_command(quick_database, "brief", "true")
    return quick_database


class Held:
    """Two processes with room for two runs each: one run lasts beside the holder, two in the other process."""

    def __init__(self, daemons: Daemons, runs: Runs, folder: Path, *, job: str) -> None:
        self._runs = runs
        self._folder = folder
        both = daemons.start_together(*[["up", "--capacity", "2"]] * 2)
        self.lasting = {one.run_id: "" for one in runs.submit_many([Request(job="lasting")] * 3)}
        for run_id in self.lasting:
            self.lasting[run_id] = started(runs, run_id)
        self.run_id = runs.submit(Request(job=job)).run_id
        eventually((folder / f"inside-{self.run_id}").exists, what="the transaction to begin")
        worker_id = started(runs, self.run_id)
        self.holder, self.other = sorted(both, key=lambda one: one.worker_id != worker_id)
        assert sorted(self.lasting.values()) == sorted(
            [self.holder.worker_id, self.other.worker_id, self.other.worker_id]
        )

    def release(self) -> None:
        (self._folder / f"release-{self.run_id}").touch()

    def check_the_others_survived(self) -> None:
        """All of them ended well, where they were started."""
        (self._folder / "end").touch()
        for run_id, worker_id in self.lasting.items():
            run = self._runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS)
            assert (run.state, run.assigned_worker_id) == (RunState.SUCCEEDED, worker_id)


def all_runs(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM tsuzuki_job_runs")).scalar_one())


def imported(database: Database) -> list[int]:
    with database.read() as connection:
        return [*connection.execute(text("SELECT run_id FROM imported")).scalars()]


def check_named(daemon: Daemon, run_id: int, job: str) -> None:
    """In its own log, by run and job, after more than any worker may be silent."""
    named = daemon.wait_for("transaction holds the write lock")
    assert (named["run"], named["job"], named["pid"]) == (run_id, job, daemon.process.pid)
    silent_seconds_max = SETTINGS.worker_ttl_seconds + SETTINGS.continuation_seconds
    assert named["seconds"] > max(silent_seconds_max, SETTINGS.lost_after_seconds)


def test_a_handler_that_holds_the_lock_for_longer_than_silence_lasts_costs_no_run(
    held: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    importing = Held(daemons, runs, tmp_path, job="importing")
    check_named(importing.holder, importing.run_id, "importing")
    told = importing.other.wait_for("write lock held for a long time")
    assert (told["run"], told["job"]) == (importing.run_id, "importing")
    assert told["holder_pid"] == importing.holder.process.pid
    importing.release()
    run = runs.wait(importing.run_id, timeout_seconds=TIMEOUT_SECONDS)
    assert run.state is RunState.SUCCEEDED, run.error
    assert imported(held) == [importing.run_id]
    importing.check_the_others_survived()
    assert all_runs(held) == 4
    daemons.stop_all()
    check_history(held)


def test_a_handler_in_the_middle_of_a_result_loses_the_lock_at_its_bound_and_fails_alone(
    held: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    be_quick(held, transaction_seconds_max=BOUND_SECONDS)
    copying = Held(daemons, runs, tmp_path, job="copying")
    check_named(copying.holder, copying.run_id, "copying")
    ended = copying.holder.wait_for("transaction rolled back")
    assert (ended["run"], ended["job"]) == (copying.run_id, "copying")
    assert ended["seconds"] >= BOUND_SECONDS

    # Others write while the handler is still in its loop.
    brief = runs.submit(Request(job="brief")).run_id
    assert runs.get(copying.run_id).run.state is RunState.RUNNING
    copying.release()
    run = runs.wait(copying.run_id, timeout_seconds=TIMEOUT_SECONDS)
    assert (run.state, run.reason) == (RunState.FAILED, Reason.HANDLER_FAILED)
    assert (run.error or "").startswith("transaction_too_long: ")
    assert imported(held) == []
    assert runs.wait(brief, timeout_seconds=TIMEOUT_SECONDS).state is RunState.SUCCEEDED
    copying.check_the_others_survived()
    assert all_runs(held) == 5
    for daemon in (copying.holder, copying.other):
        assert daemon.count("step failed, retrying") == 0
    daemons.stop_all()
    check_history(held)
