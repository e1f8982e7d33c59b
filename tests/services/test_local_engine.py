"""The engine of this process: started if no other lives, run in the foreground, stopped."""

import os
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text, update

from support.factories import WORKER, add_worker, take_lead
from support.waiting import TIMEOUT_SECONDS, wait_until
from tsuzuki.engine import settings_cache
from tsuzuki.model.errors import Conflict, SchemaMismatch
from tsuzuki.model.states import RunState
from tsuzuki.services import local_engine
from tsuzuki.services.local_engine import LocalEngine, OneRunEngine
from tsuzuki.services.runs import Request
from tsuzuki.store.schema import tables
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application, opened


@pytest.fixture
def application(database_url: str, tmp_path: Path) -> Iterator[Application]:
    environ = {"PATH": os.environ["PATH"]}
    with opened(database_url=database_url, environ=environ, cwd=tmp_path) as application:
        application.jobs.define("hello", {"command": ["true"]})
        yield application
        application.local_engine.stop(at_once=True)


@pytest.fixture
def engine(application: Application) -> LocalEngine:
    return application.local_engine


@pytest.fixture(autouse=True)
def garbage_collected_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "freeze_loaded_objects", lambda: None)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


def lead_and_work_elsewhere(database: Database) -> None:
    add_worker(database)
    take_lead(database, WORKER)


def run_hello(application: Application) -> RunState:
    run_id = application.runs.submit(Request(job="hello")).run_id
    return application.runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS).state


def test_one_engine_at_a_time_runs_here(application: Application, engine: LocalEngine) -> None:
    engine.stop()
    engine.start()
    assert engine.is_started
    with pytest.raises(Conflict, match="running already"):
        engine.start()
    assert run_hello(application) is RunState.SUCCEEDED
    engine.stop()
    assert not engine.is_started
    assert not application.liveness.has_live_leader_and_worker()


def test_where_no_engine_lives_one_is_started_for_the_block(
    application: Application, engine: LocalEngine
) -> None:
    told: list[str] = []
    with engine.ensure_running(on_start=lambda: told.append("started")):
        assert run_hello(application) is RunState.SUCCEEDED
    assert told == ["started"]
    assert not engine.is_started


def test_where_an_engine_lives_none_is_started(
    live_database: Database, engine: LocalEngine
) -> None:
    lead_and_work_elsewhere(live_database)
    with engine.ensure_running(on_start=lambda: pytest.fail("one lives")):
        assert not engine.is_started


def test_a_leader_that_died_on_this_machine_is_stepped_down_first(
    live_database: Database, application: Application, engine: LocalEngine
) -> None:
    lead_and_work_elsewhere(live_database)
    with live_database.write() as connection:
        values = {"host": socket.gethostname(), "pid": 2**22}
        connection.execute(update(tables.workers).values(**values))
    with engine.ensure_running():
        assert run_hello(application) is RunState.SUCCEEDED
    actions = [entry.action for entry in application.audit.find()]
    assert "leader.step_down" in actions


class MonotonicClock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def one_run(application: Application) -> tuple[OneRunEngine, MonotonicClock]:
    clock = MonotonicClock()
    return OneRunEngine(
        application.local_engine,
        liveness=application.liveness,
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


def serve(engine: LocalEngine, stop: threading.Event, *, metrics_port: int | None = None) -> int:
    return engine.serve(
        stop=stop,
        lead=True,
        work=True,
        capacity=1,
        tags=(),
        metrics_port=metrics_port,
        on_started=lambda: None,
        on_stopping=lambda: None,
    )


def test_in_the_foreground_it_runs_until_asked_to_stop_and_serves_metrics(
    application: Application, engine: LocalEngine
) -> None:
    stop, port, left_running = threading.Event(), free_port(), list[int]()
    serving = threading.Thread(
        target=lambda: left_running.append(serve(engine, stop, metrics_port=port))
    )
    serving.start()
    assert run_hello(application) is RunState.SUCCEEDED
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert b"tsuzuki_runs_ended" in answer.read()
    stop.set()
    serving.join(TIMEOUT_SECONDS)
    assert left_running == [0]


@pytest.mark.parametrize("component", ["engine", "books"])
def test_a_newer_version_that_upgrades_any_component_ends_it_with_a_clear_error(
    live_database: Database,
    engine: LocalEngine,
    monkeypatch: pytest.MonkeyPatch,
    component: str,
) -> None:
    monkeypatch.setattr(settings_cache, "SETTINGS_MAX_AGE_SECONDS", 0.05)

    def upgrade() -> None:
        wait_until(lambda: engine.is_started, "it runs")
        with live_database.write() as connection:
            connection.execute(
                text(f"UPDATE schema_version_{component} SET version_num = 'of the future'")
            )

    upgrading = threading.Thread(target=upgrade)
    upgrading.start()
    with pytest.raises(
        SchemaMismatch, match=f"brought to revision of the future of {component} while"
    ):
        serve(engine, threading.Event())
    upgrading.join(TIMEOUT_SECONDS)
