"""A process that is paused while it holds SQLite's write lock: the others say what they wait for."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from processes.test_dying import add_command, started
from support.daemons import Daemons, eventually
from support.dialects import only_on_sqlite
from support.factories import create_run
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

HOLDER = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN IMMEDIATE")
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def paused_with_the_lock(path: Path) -> Iterator[None]:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)])
    try:
        _, status = os.waitpid(holder.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield
    finally:
        holder.kill()
        holder.wait()


@only_on_sqlite
def test_a_wait_for_the_write_lock_is_logged_and_explained(
    quick_database: Database, database_url: str, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    add_command(quick_database, "brief", "true")
    leader = daemons.start("up")
    runs.wait(runs.submit(Request(job="brief")).run_id, timeout_seconds=120)
    with quick_database.read() as connection:
        job = jobs.get_by_name(connection, "brief")
    assert job is not None
    later = quick_database.clock.now() + timedelta(hours=1)
    waiting = create_run(quick_database, job.id, scheduled_for=later)
    assert quick_database.path is not None

    with paused_with_the_lock(quick_database.path):
        told = leader.wait_for("waiting for the write lock")
        assert told["leader"] == leader.worker_id
        assert told["leader_pid"] == leader.process.pid
        assert told["database"] == str(quick_database.path)
        assert {"leader_host", "leading_since", "lease_expires_at"} <= set(told)
        reasons = eventually(
            lambda: (
                (found := runs.explain(waiting.id).reasons)[0].cause == "database_locked" and found
            ),
            what="the lease to end",
        )
        assert f"The leader {leader.worker_id} (process" in reasons[0].sentence
        command = [sys.executable, "-m", "tsuzuki", "--database-url", database_url]
        shown = subprocess.run(
            [*command, "leader", "show"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert "is locked, so nothing can be written" in shown.stderr
        assert leader.count("waiting for the write lock") == 1

    def runs_again() -> bool:
        asked = runs.submit(Request(job="brief"))
        return runs.wait(asked.run_id, timeout_seconds=120).state is RunState.SUCCEEDED

    eventually(runs_again, what="the leader to go on")
    leader.send(signal.SIGTERM)
    assert leader.ended() == 0


def test_reading_needs_no_lock(tmp_path: Path) -> None:
    """What the log event and the explanation rely on."""
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
    with paused_with_the_lock(path):
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    connection.close()


@only_on_sqlite
def test_a_lock_that_is_held_for_long_costs_no_run(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    """Longer than after which workers are lost. The command ends while nothing can be written."""
    done = tmp_path / "done"
    add_command(quick_database, "long", f"sleep 8; touch {done}")
    for _ in range(2):
        daemons.start("up")
    run_id = runs.submit(Request(job="long")).run_id
    started(runs, run_id)
    assert quick_database.path is not None
    with paused_with_the_lock(quick_database.path):
        eventually(done.exists, what="the command to end", seconds=60)
    assert runs.wait(run_id, timeout_seconds=120).state is RunState.SUCCEEDED
    with quick_database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tsuzuki_job_runs").scalar_one() == 1
