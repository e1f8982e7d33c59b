"""A killed process is seen by others of its machine: its runs are repeated long before its silence is judged."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.daemons import Daemon, Daemons, eventually, is_alive, shell, started_on
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.engine.process_files import folder_for
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

TTL = EngineSettings().worker_ttl_seconds
"""Whatever is done before could not be done by judging silence. The settings are the defaults."""


@pytest.fixture
def daemons(database_url: str, live_database: Database, tmp_path: Path) -> Iterator[Daemons]:
    with started_on(database_url, tmp_path) as daemons:
        yield daemons


@pytest.fixture
def runs(live_database: Database) -> Runs:
    return Runs(database=live_database, actor="test")


def submit(database: Database, runs: Runs, script: str) -> int:
    add_job(
        database,
        spec("long", options={"argv": shell(script), "environment": {}, "cwd": None}),
    )
    return runs.submit(Request(job="long")).run_id


def worker_of(runs: Runs, run_id: int) -> str:
    return eventually(
        lambda: (run := runs.get(run_id).run).state is RunState.RUNNING and run.assigned_worker_id,
        what=f"run {run_id} to start",
    )


def kill(daemon: Daemon) -> float:
    daemon.send(signal.SIGKILL)
    return time.monotonic()


def seconds_until_repeated(runs: Runs, run_id: int, killed_at: float) -> float:
    retry_id = eventually(lambda: runs.get(run_id).retried_as, what="the retry")
    worker_of(runs, retry_id)
    return time.monotonic() - killed_at


def recorded_dead(database: Database) -> set[str]:
    with database.read() as connection:
        return set(workers.deaths(connection))


def test_the_run_of_a_killed_worker_is_repeated_at_once_and_its_command_is_gone(
    live_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    daemons.start("up", "--lead-only")
    first, second = daemons.start("worker"), daemons.start("worker")
    run_id = submit(live_database, runs, f"echo $$ >> {pids}; exec sleep 600")
    victim = first if worker_of(runs, run_id) == first.worker_id else second
    eventually(lambda: pids.exists() and pids.read_text(encoding="utf-8"), what="the command")
    assert seconds_until_repeated(runs, run_id, kill(victim)) < TTL
    assert not is_alive(int(pids.read_text(encoding="utf-8").split()[0]))
    lost = runs.get(run_id).run
    assert (lost.state, lost.reason) == (RunState.FAILED, Reason.WORKER_LOST)
    assert recorded_dead(live_database) == {victim.worker_id}
    check_history(live_database)


def test_a_killed_leader_is_followed_at_once_and_its_run_is_repeated(
    live_database: Database, daemons: Daemons, runs: Runs
) -> None:
    leader = daemons.start("up")
    leader.wait_for("leading")
    run_id = submit(live_database, runs, "exec sleep 600")
    worker_of(runs, run_id)
    daemons.start("up")
    assert seconds_until_repeated(runs, run_id, kill(leader)) < TTL
    check_history(live_database)


def test_a_process_that_starts_after_the_only_one_was_killed_takes_over_at_once(
    live_database: Database, daemons: Daemons, runs: Runs
) -> None:
    only = daemons.start("up")
    run_id = submit(live_database, runs, "exec sleep 600")
    worker_of(runs, run_id)
    only.kill()
    started_at = time.monotonic()
    daemons.start("up")
    assert seconds_until_repeated(runs, run_id, started_at) < TTL


def test_a_paused_worker_and_one_whose_supervisors_live_are_not_recorded_as_dead(
    live_database: Database, daemons: Daemons, runs: Runs
) -> None:
    daemons.start("up", "--lead-only")
    busy = daemons.start("worker")
    worker_of(runs, submit(live_database, runs, "exec sleep 600"))
    supervisors = psutil.Process(busy.process.pid).children(recursive=True)
    paused, killed = daemons.start("worker"), daemons.start("worker")
    paused.pause(live_database)
    for supervisor in supervisors:
        supervisor.suspend()
    kill(busy)
    kill(killed)
    eventually(lambda: killed.worker_id in recorded_dead(live_database), what="a death")
    # Supervisors resume when their worker dies, so its death may be recorded by now: if it is, they are gone.
    dead = recorded_dead(live_database)
    assert paused.worker_id not in dead
    assert busy.worker_id not in dead or not any(is_alive(one.pid) for one in supervisors)
    paused.send(signal.SIGCONT)


def test_a_process_that_stops_leaves_no_file(
    live_database: Database, database_url: str, daemons: Daemons
) -> None:
    folder = folder_for(live_database.engine.url)
    daemon = daemons.start("up")
    assert [path.name for path in folder.iterdir()] == [daemon.worker_id]
    assert folder.stat().st_uid == os.getuid()
    daemons.stop_all()
    assert not folder.exists()
