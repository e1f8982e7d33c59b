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


@pytest.fixture
def one_run(application: Application) -> tuple[OneRunEngine, MonotonicClock]:
    clock = MonotonicClock()
    return OneRunEngine(
        application.local_engine,
        "wait",
        clock=clock,  # type: ignore[arg-type]
    ), clock


def test_for_one_run_an_engine_is_started_where_none_lives(
    engine: LocalEngine, one_run: tuple[OneRunEngine, MonotonicClock]
) -> None:
    checked, _ = one_run
    checked.check(is_running=False)
    assert engine.is_started
    checked.close()
    assert not engine.is_started


def test_for_one_run_an_engine_is_started_if_those_that_live_do_not_start_it_in_time(
    live_database: Database,
    engine: LocalEngine,
    one_run: tuple[OneRunEngine, MonotonicClock],
) -> None:
    checked, clock = one_run
    lead_and_work_elsewhere(live_database)
    for clock.now in (0.0, 2.0, 4.0):
        checked.check(is_running=False)
        assert not engine.is_started
    clock.now = 6.0
    checked.check(is_running=True)
    assert not engine.is_started
    clock.now = 12.0
    checked.check(is_running=False)
    assert engine.is_started


def test_for_one_run_an_engine_that_runs_here_already_is_left_alone(
    application: Application,
    engine: LocalEngine,
    one_run: tuple[OneRunEngine, MonotonicClock],
) -> None:
    checked, _ = one_run
    engine.start()
    checked.check(is_running=False)
    checked.check(is_running=True)
    checked.close()
    assert engine.is_started
    assert run_hello(application) is RunState.SUCCEEDED


def test_for_one_run_nothing_else_is_executed(
    application: Application,
    engine: LocalEngine,
    one_run: tuple[OneRunEngine, MonotonicClock],
    tmp_path: Path,
) -> None:
    checked, _ = one_run
    application.jobs.define(
        "wait", {"command": ["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"]}
    )
    first = application.runs.submit(Request(job="wait", priority=10)).run_id
    checked.check(is_running=False)

    def takes_no_more() -> bool:
        checked.check(is_running=application.runs.get(first).run.state is RunState.RUNNING)
        return engine._engine is not None and not engine._engine.worker.accepting

    wait_until(takes_no_more, "it executes its run and takes no more")
    second = application.runs.submit(Request(job="hello")).run_id
    (tmp_path / "go").touch()
    wait_until(engine.has_left, "the worker has left")
    assert application.runs.get(first).run.state is RunState.SUCCEEDED
    assert not application.runs.get(second).run.state.is_final
    checked.check(is_running=False)
    assert not engine.is_started
