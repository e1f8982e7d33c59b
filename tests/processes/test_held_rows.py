"""Handlers with an open transaction on PostgreSQL: leader, heartbeats and operators work around the rows they hold."""

import signal
from pathlib import Path

import pytest
from sqlalchemy import text

from processes.test_dying import add_command
from support.daemons import TIMEOUT_SECONDS, Daemons, be_quick, eventually
from support.dialects import only_on_postgresql
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = [pytest.mark.slow, only_on_postgresql]

HANDLER = """
import pathlib, time
from sqlalchemy import text

def importing(run):
    release = pathlib.Path(f"release-{run.id}")
    with run.transaction() as connection:
        connection.execute(text("INSERT INTO imported VALUES (:id)"), {"id": run.id})
        pathlib.Path(f"inside-{run.id}").touch()
        while not release.exists():
            time.sleep(0.05)
    while not run.cancelled:
        time.sleep(0.05)
"""


@pytest.fixture
def held(quick_database: Database, tmp_path: Path) -> Database:
    """With a job whose handler keeps its transaction open until it is released."""
    (tmp_path / "held_handler.py").write_text(HANDLER)
    with quick_database.write() as connection:
        connection.execute(text("CREATE TABLE imported (run_id BIGINT)"))
    add_command(quick_database, "quick", "true")
    return quick_database


def add_import(database: Database, **changes: object) -> None:
    options = {"function": "held_handler:importing"}
    add_job(database, spec("import", handler="python", options=options, **changes))


def inside(folder: Path, run_id: int) -> None:
    eventually((folder / f"inside-{run_id}").exists, what="the handler's transaction to begin")


def ended(runs: Runs, run_id: int) -> tuple[RunState, Reason | None]:
    run = runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS)
    return run.state, run.reason


def test_a_cancel_is_answered_at_once_and_carried_out_when_the_transaction_ends(
    held: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    add_import(held)
    daemons.start("up")
    run_id = runs.submit(Request(job="import")).run_id
    inside(tmp_path, run_id)
    assert runs.cancel(run_id).state is RunState.RUNNING
    assert runs.get(run_id).cancel_requested is not None
    quick = runs.submit(Request(job="quick")).run_id
    assert ended(runs, quick) == (RunState.SUCCEEDED, None)
    assert runs.get(run_id).run.state is RunState.RUNNING
    (tmp_path / f"release-{run_id}").touch()
    assert ended(runs, run_id) == (RunState.CANCELED, Reason.OPERATOR)
    with held.read() as connection:
        assert connection.execute(text("SELECT run_id FROM imported")).all() == [(run_id,)]
    check_history(held)


def test_the_leader_goes_on_while_a_run_that_is_to_be_replaced_is_held(
    held: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    add_import(
        held,
        schedule=parse_schedule("every 1s"),
        concurrency_policy=ConcurrencyPolicy.REPLACE,
    )
    daemons.start("up")
    first = eventually(lambda: runs.newest_live("import"), what="the first tick")
    inside(tmp_path, first.id)
    requested = eventually(lambda: runs.get(first.id).cancel_requested, what="the next tick")
    assert requested.reason is Reason.REPLACED
    quick = runs.submit(Request(job="quick")).run_id
    assert ended(runs, quick) == (RunState.SUCCEEDED, None)
    assert runs.get(first.id).run.state is RunState.RUNNING
    (tmp_path / f"release-{first.id}").touch()
    assert ended(runs, first.id) == (RunState.CANCELED, Reason.REPLACED)
    check_history(held)


def test_a_worker_that_was_silent_keeps_its_runs_beside_a_handler_that_holds_its_row(
    held: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    be_quick(held, worker_grace_seconds=20.0)
    add_import(held)
    add_command(held, "lasting", f"while ! test -e {tmp_path}/end; do sleep 0.1; done")
    daemons.start("up", "--lead-only")
    worker = daemons.start("worker")
    lasting = runs.submit(Request(job="lasting")).run_id
    eventually(lambda: runs.get(lasting).run.started_at, what="the other run to start")
    importing = runs.submit(Request(job="import")).run_id
    inside(tmp_path, importing)
    worker.send(signal.SIGSTOP)
    eventually(lambda: is_detached(held), what="the worker to be detached")
    worker.send(signal.SIGCONT)
    eventually(lambda: not is_detached(held), what="the worker to be attached again")
    (tmp_path / "end").touch()
    assert ended(runs, lasting) == (RunState.SUCCEEDED, None)
    assert runs.get(importing).run.state is RunState.RUNNING
    check_history(held)


def is_detached(database: Database) -> bool:
    with database.read() as connection:
        found = connection.execute(
            text("SELECT count(*) FROM tsuzuki_workers WHERE state = 'DETACHED'")
        )
        return bool(found.scalar_one())
