"""A bulk cancel is the emergency brake: it needs no slot, and nothing that it covers starts any more."""

import time
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from processes.test_dying import add_command, started
from support.daemons import QUICK, TIMEOUT_SECONDS, Daemons, eventually, is_alive
from support.factories import new_run
from support.history_checker import check_history
from tsuzuki.model.bulk import BulkState, BulkVerb
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services.bulk import BulkActions
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import jobs
from tsuzuki.store.runs import runs as stored_runs
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

HANGS = "trap '' TERM; while true; do sleep 1; done"
"""Stopped only by SIGKILL, after the grace."""


@pytest.fixture
def bulk(quick_database: Database, runs: Runs) -> BulkActions:
    return BulkActions(database=quick_database, actor="test", runs=runs)


def test_hung_runs_in_every_slot_are_stopped(
    quick_database: Database, daemons: Daemons, runs: Runs, bulk: BulkActions
) -> None:
    add_command(quick_database, "hung", HANGS)
    daemons.start("up", "--capacity", "2")
    hung = [runs.submit(Request(job="hung")).run_id for _ in range(2)]
    for run_id in hung:
        started(runs, run_id)
    waiting = [runs.submit(Request(job="hung")).run_id for _ in range(3)]
    bulk_id = bulk.preview(BulkVerb.CANCEL, RunFilter(job_name="hung")).action.id
    bulk.confirm(bulk_id)
    view = bulk.wait(bulk_id)
    assert (view.state, view.action.done) == (BulkState.DONE, 5)
    assert {runs.get(run_id).run.state for run_id in hung + waiting} == {RunState.CANCELED}
    # The slots are free again: what came later runs.
    add_command(quick_database, "next", "true")
    next_id = runs.submit(Request(job="next")).run_id
    ended = runs.wait(next_id, timeout_seconds=TIMEOUT_SECONDS)
    assert ended.state is RunState.SUCCEEDED
    check_history(quick_database)


def test_hung_runs_are_dead_within_the_grace_and_a_second(
    quick_database: Database, daemons: Daemons, runs: Runs, bulk: BulkActions, tmp_path: Path
) -> None:
    add_command(quick_database, "hung", f"echo $$ > {tmp_path}/$TSUZUKI_RUN_ID.pid; {HANGS}")
    daemons.start("up", "--lead-only")
    daemons.start("worker", "--capacity", "2")

    def seconds_to_stop() -> float:
        hung = [runs.submit(Request(job="hung")).run_id for _ in range(2)]
        pids = [
            int(eventually(partial(line_of, tmp_path / f"{run_id}.pid"), what="the start"))
            for run_id in hung
        ]
        bulk_id = bulk.preview(BulkVerb.CANCEL, RunFilter(job_name="hung")).action.id
        began = time.monotonic()
        bulk.confirm(bulk_id)
        eventually(lambda: not any(map(is_alive, pids)), what="both to be dead")
        return time.monotonic() - began

    # The fastest of a few: a machine that is busy with other work is late now and then.
    limit = QUICK["kill_grace_seconds"] + 1.0
    assert any(seconds_to_stop() < limit for _ in range(5))


def line_of(file: Path) -> str | None:
    """Once the whole line is there."""
    text = file.read_text() if file.exists() else ""
    return text if text.endswith("\n") else None


def fill(database: Database, name: str, count: int) -> None:
    with database.read() as connection:
        job = jobs.get_by_name(connection, name)
    assert job is not None
    for first in range(0, count, 5000):
        with database.write() as connection:
            batch = [new_run(database, job.id) for _ in range(min(5000, count - first))]
            stored_runs.create(connection, batch)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [600, pytest.param(100_000, marks=pytest.mark.full)])
def test_nothing_starts_after_the_confirmation(
    quick_database: Database, daemons: Daemons, runs: Runs, bulk: BulkActions, count: int
) -> None:
    add_command(quick_database, "many", "true")
    add_command(quick_database, "other", "true")
    fill(quick_database, "many", count)
    daemons.start("up", "--capacity", "4")
    daemons.start("worker", "--capacity", "4")
    eventually(
        lambda: bool(runs.find(RunFilter(job_name="many", states=frozenset({RunState.SUCCEEDED})))),
        what="the first to run",
    )
    wanted = RunFilter(job_name="many", states=frozenset({RunState.PENDING}))
    bulk_id = bulk.preview(BulkVerb.CANCEL, wanted).action.id
    bulk.confirm(bulk_id)
    with quick_database.read() as connection:
        confirmed_at = quick_database.now(connection)
    other = runs.submit(Request(job="other")).run_id
    assert runs.wait(other, timeout_seconds=TIMEOUT_SECONDS).state is RunState.SUCCEEDED
    assert bulk.wait(bulk_id).state is BulkState.DONE
    assert not runs.find(wanted)
    with quick_database.read() as connection:
        late = select(job_runs.c.id).where(
            job_runs.c.id < other, job_runs.c.started_at > confirmed_at
        )
        assert connection.execute(late).all() == []
    check_history(quick_database)
