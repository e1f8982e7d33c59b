"""An engine of this process for one run: started if no other executes it, and for nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from services.local_application import hello_application, lead_and_work_elsewhere, run_hello
from support.databases import all_components
from support.waiting import wait_until
from tsuzuki.model.states import RunState
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.services.one_run_engine import OneRunEngine
from tsuzuki.services.runs import Request
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application


@pytest.fixture
def components() -> Sequence[Component]:
    return all_components()


@pytest.fixture
def application(database_url: str, tmp_path: Path) -> Iterator[Application]:
    with hello_application(database_url, tmp_path) as application:
        yield application


@pytest.fixture
def engine(application: Application) -> LocalEngine:
    return application.local_engine


class MonotonicClock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def wait_for_file(file: Path) -> dict[str, list[str]]:
    return {"command": ["sh", "-c", f"until [ -e {file} ]; do sleep 0.05; done"]}


@pytest.fixture
def run_id(application: Application, tmp_path: Path) -> int:
    """A run that waits, and ends when the file `go` is there."""
    application.jobs.define("wait", wait_for_file(tmp_path / "go"))
    return application.runs.submit(Request(job="wait")).run_id


@pytest.fixture
def clock() -> MonotonicClock:
    return MonotonicClock()


@pytest.fixture
def one_run(application: Application, run_id: int, clock: MonotonicClock) -> OneRunEngine:
    return OneRunEngine(
        application.local_engine,
        application.runs,
        lambda: run_id,
        clock=clock,  # type: ignore[arg-type]
    )


def wait_for_state(application: Application, run_id: int, state: RunState) -> None:
    wait_until(lambda: application.runs.get(run_id).run.state is state, f"run {run_id} is {state}")


def test_for_one_run_an_engine_is_started_where_none_lives(
    engine: LocalEngine, one_run: OneRunEngine
) -> None:
    one_run.check(is_running=False)
    assert engine.is_started
    one_run.close()
    assert not engine.is_started


def test_for_one_run_an_engine_is_started_if_those_that_live_do_not_start_it_in_time(
    live_database: Database, engine: LocalEngine, one_run: OneRunEngine, clock: MonotonicClock
) -> None:
    lead_and_work_elsewhere(live_database)
    for clock.now in (0.0, 2.0, 4.0):
        one_run.check(is_running=False)
        assert not engine.is_started
    clock.now = 6.0
    one_run.check(is_running=True)
    assert not engine.is_started
    clock.now = 12.0
    one_run.check(is_running=False)
    assert engine.is_started


def test_for_one_run_an_engine_that_runs_here_already_is_left_alone(
    application: Application, engine: LocalEngine, one_run: OneRunEngine
) -> None:
    engine.start()
    one_run.check(is_running=False)
    one_run.check(is_running=True)
    one_run.close()
    assert engine.is_started
    assert run_hello(application) is RunState.SUCCEEDED


def test_for_a_run_that_has_ended_no_engine_is_started(
    application: Application, engine: LocalEngine, one_run: OneRunEngine, run_id: int
) -> None:
    application.runs.cancel(run_id)
    one_run.check(is_running=False)
    assert not engine.is_started


def test_for_one_run_nothing_else_is_executed_also_not_of_its_job(
    application: Application, one_run: OneRunEngine, run_id: int, tmp_path: Path
) -> None:
    others = [
        application.runs.submit(Request(job=name, priority=10)).run_id for name in ("wait", "hello")
    ]
    one_run.check(is_running=False)
    wait_for_state(application, run_id, RunState.RUNNING)
    (tmp_path / "go").touch()
    wait_for_state(application, run_id, RunState.SUCCEEDED)
    later = application.runs.submit(Request(job="hello")).run_id
    one_run.close()
    assert [application.runs.get(other).history for other in (*others, later)] == [[], [], []]


def test_for_one_run_its_retry_is_executed_too(
    application: Application,
    one_run: OneRunEngine,
    run_id: int,
    clock: MonotonicClock,
    tmp_path: Path,
) -> None:
    one_run.check(is_running=False)
    wait_for_state(application, run_id, RunState.RUNNING)
    application.runs.cancel(run_id)
    (tmp_path / "go").touch()
    retry_id = application.runs.retry(run_id).run_id
    clock.now = 2.0
    one_run.check(is_running=False)
    assert one_run.is_ours
    wait_for_state(application, retry_id, RunState.SUCCEEDED)
