"""A process that was started for one job or one run, while another process leads: it executes nothing else."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from processes.test_dying import add_command
from support.daemons import TIMEOUT_SECONDS, Daemons
from support.history_checker import check_history
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application, opened

pytestmark = pytest.mark.slow


@pytest.fixture
def application(
    quick_database: Database, database_url: str, tmp_path: Path
) -> Iterator[Application]:
    environ = {"PATH": os.environ["PATH"]}
    with opened(database_url=database_url, environ=environ, cwd=tmp_path) as application:
        yield application
        application.local_engine.stop(at_once=True)


@pytest.fixture
def foreign(quick_database: Database, daemons: Daemons, runs: Runs) -> list[int]:
    """More urgent runs of another job, which wait for a worker; a process that only leads is there."""
    add_command(quick_database, "foreign", "true", max_concurrent=5)
    add_command(quick_database, "mine", "true")
    daemons.start("up", "--lead-only")
    return [runs.submit(Request(job="foreign", priority=5)).run_id for _ in range(5)]


def assert_only_mine_runs(database: Database, runs: Runs, foreign: list[int], mine: int) -> None:
    assert runs.wait(mine, timeout_seconds=TIMEOUT_SECONDS).state is RunState.SUCCEEDED
    assert {runs.get(run_id).run.state for run_id in foreign} == {RunState.PENDING}
    check_history(database)


def test_a_process_for_one_job_leaves_the_runs_of_others_alone(
    quick_database: Database, application: Application, runs: Runs, foreign: list[int]
) -> None:
    with application.local_engine.ensure_running(only_job="mine") as is_ours:
        assert is_ours
        mine = runs.submit(Request(job="mine")).run_id
        assert_only_mine_runs(quick_database, runs, foreign, mine)
    assert {runs.get(run_id).run.state for run_id in foreign} == {RunState.PENDING}


def test_a_process_for_one_run_leaves_the_runs_of_others_alone(
    quick_database: Database, application: Application, runs: Runs, foreign: list[int]
) -> None:
    # Also those of its own job, which another person waits for.
    foreign += [runs.submit(Request(job="mine", priority=5)).run_id for _ in range(3)]
    mine = runs.submit(Request(job="mine")).run_id
    with closing(application.one_run_engine(lambda: mine)) as engine:
        engine.check(is_running=False)
        assert engine.is_ours
        assert_only_mine_runs(quick_database, runs, foreign, mine)
    assert {runs.get(run_id).run.state for run_id in foreign} == {RunState.PENDING}
