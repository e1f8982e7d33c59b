"""Whichever process is killed, every run still ends exactly once."""

from pathlib import Path

import pytest

from support.daemons import Daemons, eventually, is_alive, shell
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


def add_command(database: Database, name: str, script: str, **changes: object) -> None:
    options = {"argv": shell(script), "environment": {}, "cwd": None}
    changes.setdefault("concurrency_policy", ConcurrencyPolicy.ALLOW)
    add_job(database, spec(name, options=options, **changes))


def started(runs: Runs, run_id: int) -> str:
    """The worker that runs it, once it runs."""
    return eventually(
        lambda: (run := runs.get(run_id).run).state is RunState.RUNNING and run.assigned_worker_id,
        what=f"run {run_id} to start",
    )


def test_a_run_whose_worker_is_killed_is_retried_elsewhere_and_ends_once(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    add_command(
        quick_database, "long", f"echo $$ >> {pids}; test $TSUZUKI_ATTEMPT = 2 || sleep 600"
    )
    daemons.start("up", "--lead-only")
    first, second = daemons.start("worker"), daemons.start("worker")
    run_id = runs.submit(Request(job="long")).run_id
    victim = first if started(runs, run_id) == first.worker_id else second
    victim.kill()

    lost = runs.wait(run_id, timeout_seconds=120)
    assert (lost.state, lost.reason) == (RunState.FAILED, Reason.WORKER_LOST)
    retry_id = runs.get(run_id).retried_as
    assert retry_id is not None
    retry = runs.wait(retry_id, timeout_seconds=120)
    assert (retry.state, retry.attempt, retry.retries_used) == (RunState.SUCCEEDED, 2, 0)
    assert retry.assigned_worker_id != victim.worker_id
    child = int(pids.read_text(encoding="utf-8").split()[0])
    eventually(lambda: not is_alive(child), what="the dead worker's command to be dead too")
    check_history(quick_database)


def test_when_the_leader_is_killed_another_leads_and_nothing_is_lost(
    quick_database: Database, daemons: Daemons, runs: Runs
) -> None:
    add_command(quick_database, "brief", "true")
    leader = daemons.start("up", "--lead-only")
    leader.wait_for("leading")
    follower = daemons.start("up", "--lead-only")
    daemons.start("worker")
    leader.kill()
    submitted = runs.submit_many([Request(job="brief") for _ in range(20)])
    follower.wait_for("leading")
    for submission in submitted:
        assert runs.wait(submission.run_id, timeout_seconds=120).state is RunState.SUCCEEDED
    check_history(quick_database)


def test_when_everything_is_killed_at_once_what_was_confirmed_is_done_after_a_restart(
    quick_database: Database, daemons: Daemons, runs: Runs
) -> None:
    add_command(quick_database, "brief", "sleep 0.05", max_concurrent=4)
    everything = [daemons.start("up"), daemons.start("up")]
    submitted = runs.submit_many([Request(job="brief") for _ in range(40)])
    runs.wait(submitted[3].run_id, timeout_seconds=120)
    for daemon in everything:
        daemon.kill()

    daemons.start("up")
    for submission in submitted:
        run = runs.wait(submission.run_id, timeout_seconds=120)
        if run.state is RunState.FAILED:
            assert run.reason is Reason.WORKER_LOST
            retry_id = runs.get(run.id).retried_as
            assert retry_id is not None
            run = runs.wait(retry_id, timeout_seconds=120)
        assert run.state is RunState.SUCCEEDED
    check_history(quick_database)
