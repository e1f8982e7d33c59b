"""The database goes away and comes back: no process needs a restart, and meanwhile nothing runs twice."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from processes.test_dying import add_command, started
from support.daemons import QUICK, Daemons, be_quick, started_on
from support.databases import PostgresServer, opened
from support.history_checker import check_history
from support.load import Load
from support.proxy import Proxy
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

TRUE_SECONDS = 30.0
SPEED = QUICK["lease_seconds"] / EngineSettings().lease_seconds
"""How long a second lasts with the quick settings."""


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres.socket_file) as proxy:
        yield proxy


@pytest.fixture
def behind(live_database: Database, proxy: Proxy, tmp_path: Path) -> Iterator[Daemons]:
    """Processes that reach the database through the proxy; the test itself does not need it."""
    with started_on(proxy.url(live_database.engine.url.database or ""), tmp_path) as daemons:
        yield daemons


def wait_for_a_while(seconds: float) -> None:
    """The outage itself: a matter of time and of nothing else."""
    threading.Event().wait(seconds)


def cut(proxy: Proxy, how: str) -> None:
    {"silent": proxy.fall_silent, "refusing": proxy.refuse}[how]()


def test_a_server_that_is_restarted_under_load_is_used_again_by_all_processes(
    own_server: PostgresServer, tmp_path: Path
) -> None:
    with opened(url := own_server.create()) as database:
        be_quick(database)
        with started_on(url, tmp_path) as daemons:
            daemons.start_together(["up"], ["up"], ["worker"])
            with Load(database, tmp_path, seconds=0.3) as load:
                load.wait_for_ends(10)
                for how in ("fast", "immediate"):
                    own_server.halt(how=how)
                    own_server.start_again()
                    load.wait_for_ends(10)
            load.settle()
            assert daemons.are_all_up()


@pytest.mark.parametrize("how", ["silent", "refusing"])
def test_a_database_that_was_unreachable_for_long_is_used_again_by_all_processes(
    quick_database: Database, behind: Daemons, proxy: Proxy, tmp_path: Path, how: str
) -> None:
    every_daemon = behind.start_together(["up"], ["up"], ["worker"])
    with Load(quick_database, tmp_path, seconds=0.3) as load:
        load.wait_for_ends(10)
        cut(proxy, how)
        wait_for_a_while(TRUE_SECONDS * SPEED)
        proxy.mend()
        load.wait_for_ends(10)
    load.settle()
    assert behind.are_all_up()
    for daemon in every_daemon:
        daemon.wait_for("attached again")


@pytest.mark.full
def test_thirty_seconds_without_the_database_cost_nothing_but_time(
    live_database: Database, behind: Daemons, proxy: Proxy, tmp_path: Path
) -> None:
    """The same as above in true length, with the default settings."""
    behind.start_together(["up"], ["up"])
    with Load(live_database, tmp_path, seconds=0.3) as load:
        load.wait_for_ends(10)
        proxy.fall_silent()
        wait_for_a_while(TRUE_SECONDS)
        proxy.mend()
        load.wait_for_ends(10)
    load.settle()
    assert behind.are_all_up()


@pytest.mark.parametrize("how", ["silent", "refusing"])
def test_a_worker_without_the_database_stops_its_run_before_another_worker_gets_it(
    quick_database: Database,
    daemons: Daemons,
    behind: Daemons,
    proxy: Proxy,
    runs: Runs,
    tmp_path: Path,
    how: str,
) -> None:
    marks = tmp_path / "marks"
    mark = f'echo "$TSUZUKI_ATTEMPT $$" >> {marks}; test $TSUZUKI_ATTEMPT = 1 || exit 0; sleep 0.02'
    add_command(quick_database, "long", f"while :; do {mark}; done")
    daemons.start("up", "--lead-only")
    unreachable = behind.start("worker")
    run_id = runs.submit(Request(job="long")).run_id
    assert started(runs, run_id) == unreachable.worker_id
    cut(proxy, how)
    daemons.start("worker")
    lost = runs.wait(run_id, timeout_seconds=120)
    assert (lost.state, lost.reason) == (RunState.FAILED, Reason.WORKER_LOST)
    written = marks.read_text("utf-8").splitlines()
    retry_id = runs.get(run_id).retried_as
    assert retry_id is not None
    assert runs.wait(retry_id, timeout_seconds=120).state is RunState.SUCCEEDED
    attempts = [line.split()[0] for line in marks.read_text("utf-8").splitlines()]
    assert attempts == sorted(attempts)
    # The retry may have started by then; but the first attempt had written its last.
    assert attempts.count("1") == sum(line.startswith("1 ") for line in written)
    proxy.mend()
    unreachable.wait_for("attached again")
    assert runs.get(run_id).run == lost
    check_history(quick_database)
