"""Isolated functions of real processes whose worker is killed, paused or stopped: none outlives its run."""

import signal
from pathlib import Path

import pytest

from support.daemons import Daemon, Daemons, eventually, is_alive
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

SOURCE = """
import os, signal, subprocess, sys
from pathlib import Path

def stubborn(run):
    here = Path(__file__).parent
    if run.attempt > 1:
        return [int(pid) for pid in (here / "pids").read_text().split() if is_alive(pid)]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    daemon = subprocess.Popen(["setsid", "sleep", "600"])
    (here / "written").write_text(f"{os.getpid()} {daemon.pid}")
    (here / "written").rename(here / "pids")
    while True:
        pass

def is_alive(pid):
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
"""


class Stubborn:
    """A run of the function on one of two workers."""

    def __init__(self, database: Database, daemons: Daemons, runs: Runs, folder: Path) -> None:
        self._runs = runs
        self._pids = folder / "pids"
        (folder / "stubborn_work.py").write_text(SOURCE, encoding="utf-8")
        options = {"function": "stubborn_work:stubborn", "isolation": "process"}
        add_job(database, spec("stubborn", handler="python", options=options))
        daemons.start("up", "--lead-only")
        workers = [daemons.start("worker"), daemons.start("worker")]
        self.run_id = runs.submit(Request(job="stubborn")).run_id
        eventually(self._pids.exists, what="the function to start")
        worker_id = runs.get(self.run_id).run.assigned_worker_id
        self.worker: Daemon = next(one for one in workers if one.worker_id == worker_id)

    def pids(self) -> list[int]:
        return [int(pid) for pid in self._pids.read_text(encoding="utf-8").split()]

    def are_gone(self) -> bool:
        return not any(is_alive(pid) for pid in self.pids())


@pytest.fixture
def stubborn(quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path) -> Stubborn:
    return Stubborn(quick_database, daemons, runs, tmp_path)


def retried(runs: Runs, run_id: int) -> None:
    """The retry succeeds, and has found no process of the first attempt."""
    runs.wait(run_id, timeout_seconds=120)
    retry_id = runs.get(run_id).retried_as
    assert retry_id is not None
    retry = runs.wait(retry_id, timeout_seconds=120)
    assert retry.state is RunState.SUCCEEDED
    assert retry.result == []


def test_a_function_ends_with_its_killed_worker(
    stubborn: Stubborn, quick_database: Database, runs: Runs
) -> None:
    stubborn.worker.kill()
    eventually(stubborn.are_gone, what="the function to be gone", seconds=10.0)
    retried(runs, stubborn.run_id)
    assert runs.get(stubborn.run_id).run.reason is Reason.WORKER_LOST
    check_history(quick_database)


def test_a_paused_workers_function_ends_before_its_repeat_starts(
    stubborn: Stubborn, quick_database: Database, runs: Runs
) -> None:
    stubborn.worker.pause(quick_database)
    retried(runs, stubborn.run_id)
    stubborn.worker.send(signal.SIGCONT)
    check_history(quick_database)


def test_a_worker_that_shuts_down_ends_its_function_and_hands_the_run_back(
    stubborn: Stubborn, quick_database: Database, runs: Runs
) -> None:
    stubborn.worker.send(signal.SIGTERM)
    stubborn.worker.send(signal.SIGTERM)
    retried(runs, stubborn.run_id)
    assert stubborn.are_gone()
    check_history(quick_database)


def test_a_canceled_function_is_killed(
    stubborn: Stubborn, quick_database: Database, runs: Runs
) -> None:
    runs.cancel(stubborn.run_id)
    eventually(stubborn.are_gone, what="the function to be gone", seconds=30.0)
    assert runs.get(stubborn.run_id).run.state is RunState.CANCELED
    check_history(quick_database)
