"""A worker that is paused while its command runs: the command is ended before it is repeated elsewhere."""

import signal
from pathlib import Path

import pytest

from support.daemons import Daemons, eventually, shell
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


def test_a_paused_workers_command_ends_before_its_repeat_starts(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = (
        f"if test $TSUZUKI_ATTEMPT = 1; then echo $$ > {pid}; exec sleep 600; fi;"
        f" if kill -0 $(cat {pid}); then exit 1; fi"
    )
    options = {"argv": shell(script), "environment": {}, "cwd": None}
    add_job(quick_database, spec("long", options=options))
    daemons.start("up", "--lead-only")
    first, second = daemons.start("worker"), daemons.start("worker")
    run_id = runs.submit(Request(job="long")).run_id
    paused = first if first.worker_id == _worker_of(runs, run_id) else second
    eventually(lambda: pid.exists() and pid.read_text(encoding="utf-8"), what="the command")
    paused.pause(quick_database)

    runs.wait(run_id, timeout_seconds=120)
    retry_id = runs.get(run_id).retried_as
    assert retry_id is not None
    assert runs.wait(retry_id, timeout_seconds=120).state is RunState.SUCCEEDED
    paused.send(signal.SIGCONT)
    check_history(quick_database)


def _worker_of(runs: Runs, run_id: int) -> str:
    return eventually(
        lambda: (run := runs.get(run_id).run).state is RunState.RUNNING and run.assigned_worker_id,
        what=f"run {run_id} to start",
    )
