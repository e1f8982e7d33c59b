"""Processes are killed and paused under load: no run is lost, and none is executed twice."""

import signal
from pathlib import Path

import pytest

from support.daemons import Daemon, Daemons, eventually
from support.load import Load
from tsuzuki.model.states import Reason
from tsuzuki.store import leadership
from tsuzuki.store.runs import ownership
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


@pytest.fixture
def load(quick_database: Database, tmp_path: Path) -> Load:
    return Load(quick_database, tmp_path, seconds=0.5)


def running_on(database: Database, worker_id: str) -> set[int]:
    with database.read() as connection:
        return {run.id for run in ownership.running_on_worker(connection, worker_id=worker_id)}


def paused_at_work(database: Database, daemon: Daemon) -> set[int] | None:
    """What it runs, now that it is paused; None, and it goes on, if that is nothing."""
    daemon.pause(database)
    if held := running_on(database, daemon.worker_id):
        return held
    daemon.send(signal.SIGCONT)
    return None


def leader_of(database: Database, *daemons: Daemon) -> Daemon:
    """The one of them that leads, once one does."""

    def leading() -> Daemon | None:
        with database.read() as connection:
            current = leadership.current(connection)
        holders = {daemon.worker_id: daemon for daemon in daemons}
        return holders.get(current.holder or "") if current.is_valid else None

    return eventually(leading, what="one of them to lead")


@pytest.mark.parametrize("victims", ["worker", "leader", "both"])
def test_when_a_process_is_killed_under_load_every_piece_of_work_is_done(
    quick_database: Database, daemons: Daemons, load: Load, victims: str
) -> None:
    one, other, worker = daemons.start_together(["up"], ["up"], ["worker"])
    leader = leader_of(quick_database, one, other)
    killed = {"worker": [worker], "leader": [leader], "both": [worker, leader]}[victims]
    with load:
        load.wait_for_ends(10)
        for daemon in killed:
            daemon.send(signal.SIGKILL)
        load.wait_for_ends(10)
    load.settle()


@pytest.mark.parametrize("paused", ["worker", "leader"])
def test_a_process_paused_under_load_until_its_runs_were_taken_changes_nothing(
    quick_database: Database, daemons: Daemons, load: Load, paused: str
) -> None:
    one, other, worker = daemons.start_together(["up"], ["up"], ["worker"])
    leader = leader_of(quick_database, one, other)
    paused_daemon = {"worker": worker, "leader": leader}[paused]
    name = paused_daemon.worker_id
    with load:
        load.wait_for_ends(10)
        held = eventually(
            lambda: paused_at_work(quick_database, paused_daemon), what="it to be paused at work"
        )
        eventually(
            lambda: not running_on(quick_database, name), what="its work to be taken from it"
        )
        assert (leader_of(quick_database, one, other) is leader) == (paused == "worker")
        ended = paused_daemon.count("run ended")
        paused_daemon.send(signal.SIGCONT)
        eventually(lambda: paused_daemon.count("run ended") > ended, what="it to work again")
        load.wait_for_ends(10)
    runs = load.settle(was_paused=True)
    # On a busy machine another process may have been too slow as well; that must do no harm either.
    assert held <= {run.id for run in runs if run.reason is Reason.WORKER_LOST}
    assert daemons.are_all_up()
