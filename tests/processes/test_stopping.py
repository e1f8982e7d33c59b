"""A process that is shut down, detached, or paused."""

import signal
from pathlib import Path

import pytest

from processes.test_dying import add_command, started
from support.daemons import Daemons, be_quick, eventually, is_alive
from support.history_checker import check_history
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.services.workers import Workers
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


def state_of(database: Database, worker_id: str) -> WorkerState:
    with database.read() as connection:
        worker = workers.get(connection, worker_id)
    assert worker is not None
    return worker.state


def test_a_worker_that_is_asked_to_stop_finishes_what_it_runs(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    add_command(quick_database, "gated", f"until test -e {gate}; do sleep 0.05; done")
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker", "--capacity", "1")
    run_id = runs.submit(Request(job="gated")).run_id
    started(runs, run_id)
    worker.send(signal.SIGTERM)
    eventually(
        lambda: state_of(quick_database, worker.worker_id) is WorkerState.DRAINING,
        what="the worker to drain",
    )
    gate.touch()
    assert worker.ended() == 0
    assert runs.get(run_id).run.state is RunState.SUCCEEDED
    assert state_of(quick_database, worker.worker_id) is WorkerState.GONE
    check_history(quick_database)


@pytest.mark.parametrize("asked_by", ["a signal", "an operator"])
def test_what_outlasts_the_drain_is_stopped_and_retried_at_once_for_free(
    quick_database: Database, daemons: Daemons, runs: Runs, asked_by: str
) -> None:
    be_quick(quick_database, drain_timeout_seconds=0.3)
    add_command(quick_database, "long", "test $TSUZUKI_ATTEMPT = 2 || sleep 600")
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker")
    run_id = runs.submit(Request(job="long")).run_id
    started(runs, run_id)
    if asked_by == "an operator":
        Workers(database=quick_database, actor="test").drain(worker.worker_id)
        assert worker.wait_for("drained")["stays_to_lead"] is False
    else:
        worker.send(signal.SIGTERM)
    assert worker.ended() == 0
    stopped = runs.get(run_id)
    assert stopped.run.state is RunState.FAILED
    assert stopped.run.reason is Reason.WORKER_SHUTDOWN
    assert stopped.retried_as is not None
    daemons.start("worker")
    retry = runs.wait(stopped.retried_as, timeout_seconds=120)
    assert (retry.state, retry.retries_used) == (RunState.SUCCEEDED, 0)
    check_history(quick_database)


def test_a_second_signal_does_not_wait(
    quick_database: Database, daemons: Daemons, runs: Runs
) -> None:
    be_quick(quick_database, drain_timeout_seconds=600)
    add_command(quick_database, "long", "trap '' TERM; sleep 600")
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker")
    run_id = runs.submit(Request(job="long")).run_id
    started(runs, run_id)
    worker.send(signal.SIGTERM)
    eventually(
        lambda: state_of(quick_database, worker.worker_id) is WorkerState.DRAINING,
        what="the worker to drain",
    )
    worker.send(signal.SIGTERM)
    assert worker.ended() == 0
    assert runs.get(run_id).run.reason is Reason.WORKER_SHUTDOWN
    check_history(quick_database)


def test_a_worker_that_an_operator_detaches_stops_what_it_runs_and_comes_back_anew(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    add_command(
        quick_database, "long", f"echo $$ >> {pids}; test $TSUZUKI_ATTEMPT = 2 || sleep 600"
    )
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker")
    run_id = runs.submit(Request(job="long")).run_id
    started(runs, run_id)
    Workers(database=quick_database, actor="test").detach(worker.worker_id)
    ended = runs.wait(run_id, timeout_seconds=120)
    assert (ended.state, ended.reason) == (RunState.FAILED, Reason.NOT_CONFIRMED)
    child = int(pids.read_text(encoding="utf-8").split()[0])
    eventually(lambda: not is_alive(child), what="the command to be dead")
    retry_id = runs.get(run_id).retried_as
    assert retry_id is not None
    retry = runs.wait(retry_id, timeout_seconds=120)
    assert retry.state is RunState.SUCCEEDED
    assert retry.assigned_worker_id == worker.wait_for("attached again")["worker"]
    check_history(quick_database)


def test_a_worker_that_was_only_paused_for_a_moment_is_confirmed_and_goes_on(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    be_quick(quick_database, worker_grace_seconds=30.0)
    gate = tmp_path / "gate"
    add_command(quick_database, "gated", f"until test -e {gate}; do sleep 0.05; done")
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker")
    run_id = runs.submit(Request(job="gated")).run_id
    started(runs, run_id)
    worker.pause(quick_database)
    eventually(
        lambda: state_of(quick_database, worker.worker_id) is WorkerState.DETACHED,
        what="the silent worker to be detached",
    )
    worker.send(signal.SIGCONT)
    eventually(
        lambda: state_of(quick_database, worker.worker_id) is WorkerState.ATTACHED,
        what="the worker to be taken back",
    )
    gate.touch()
    ended = runs.wait(run_id, timeout_seconds=120)
    assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 1)
    check_history(quick_database)


def test_a_worker_that_wakes_after_its_run_was_taken_changes_nothing(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = f"test $TSUZUKI_ATTEMPT = 2 && exit 0; until test -e {gate}; do sleep 0.05; done"
    add_command(quick_database, "gated", script)
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker")
    run_id = runs.submit(Request(job="gated")).run_id
    started(runs, run_id)
    worker.pause(quick_database)
    lost = runs.wait(run_id, timeout_seconds=120)
    assert lost.reason is Reason.WORKER_LOST
    gate.touch()
    worker.send(signal.SIGCONT)
    retry_id = runs.get(run_id).retried_as
    assert retry_id is not None
    assert runs.wait(retry_id, timeout_seconds=120).state is RunState.SUCCEEDED
    assert runs.get(run_id).run == lost
    check_history(quick_database)


def test_a_leader_that_was_paused_beyond_its_lease_finds_itself_replaced(
    quick_database: Database, daemons: Daemons, runs: Runs
) -> None:
    add_command(quick_database, "brief", "true")
    old = daemons.start("up", "--lead-only")
    first = old.wait_for("leading")["epoch"]
    old.pause(quick_database)
    new = daemons.start("up")
    second = new.wait_for("leading")["epoch"]
    assert second == first + 1
    submitted = runs.submit_many([Request(job="brief") for _ in range(10)])
    old.send(signal.SIGCONT)
    for submission in submitted:
        assert runs.wait(submission.run_id, timeout_seconds=120).state is RunState.SUCCEEDED
    old.wait_for("no longer the leader")
    check_history(quick_database)
