"""The engine of this process: started if no other lives, run in the foreground, stopped."""

import logging
import os
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text, update

from services.local_application import hello_application, lead_and_work_elsewhere, run_hello
from support.databases import all_components
from support.factories import WORKER, depose_and_take, take_lead
from support.waiting import TIMEOUT_SECONDS, wait_until
from tsuzuki.engine import settings_cache
from tsuzuki.engine.process import Engine
from tsuzuki.engine.worker.steps import WorkerSteps
from tsuzuki.model.errors import Conflict, SchemaMismatch, Unreachable
from tsuzuki.model.states import RunState
from tsuzuki.services import local_engine
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.services.runs import Request
from tsuzuki.store.schema import tables
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application, opened


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


@pytest.fixture(autouse=True)
def garbage_collected_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "freeze_loaded_objects", lambda: None)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


def test_one_engine_at_a_time_runs_here(application: Application, engine: LocalEngine) -> None:
    engine.stop()
    engine.start()
    assert engine.is_started
    with pytest.raises(Conflict, match="already running"):
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


def test_a_successor_of_a_leader_that_was_judged_dead_is_left_alone(
    live_database: Database, application: Application, engine: LocalEngine
) -> None:
    judged = take_lead(live_database, WORKER)
    successor = depose_and_take(live_database)
    application.liveness.term_of_leader_that_died_here = lambda: judged  # type: ignore[method-assign]
    assert engine.start_if_needed()
    assert application.workers.leader().holder == successor.holder
    assert application.audit.find(object_type="leader") == []


def test_an_engine_that_could_not_start_can_be_started_again(
    application: Application, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "start", refuse_to_start)
        with pytest.raises(Unreachable):
            engine.start()
        with pytest.raises(Unreachable):
            serve(engine, threading.Event())
    assert not engine.is_started
    engine.start()
    assert run_hello(application) is RunState.SUCCEEDED


def refuse_to_start(_engine: Engine) -> None:
    raise Unreachable("the database does not answer")


def test_a_start_that_failed_may_be_made_again_by_the_caller(
    application: Application, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [Unreachable("the database does not answer")]
    register = WorkerSteps.register

    def fail_once(steps: WorkerSteps) -> None:
        if failures:
            raise failures.pop()
        register(steps)

    def start_twice(start: Callable[[], None]) -> None:
        with pytest.raises(Unreachable):
            start()
        start()

    monkeypatch.setattr(WorkerSteps, "register", fail_once)
    stop = threading.Event()
    serving = threading.Thread(target=partial(serve, engine, stop, start_by=start_twice))
    serving.start()
    assert run_hello(application) is RunState.SUCCEEDED
    stop.set()
    serving.join(TIMEOUT_SECONDS)


def serve(
    engine: LocalEngine,
    stop: threading.Event,
    *,
    metrics_port: int | None = None,
    start_by: Callable[[Callable[[], None]], None] = lambda start: start(),
) -> int:
    return engine.serve(
        stop=stop,
        lead=True,
        work=True,
        capacity=1,
        tags=(),
        metrics_address=("127.0.0.1", metrics_port) if metrics_port else None,
        start_by=start_by,
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


def test_a_port_that_is_taken_is_a_conflict_in_plain_words(engine: LocalEngine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Conflict) as raised:
        serve(engine, threading.Event(), metrics_port=taken.getsockname()[1])
    assert raised.value.specific_code == "metrics_port"
    assert "--metrics-port" in (raised.value.hint or "")


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
                text(f"UPDATE tsuzuki_schema_version_{component} SET version_num = 'of the future'")
            )

    upgrading = threading.Thread(target=upgrade)
    upgrading.start()
    with pytest.raises(SchemaMismatch, match=f"revision of the future of {component} while"):
        serve(engine, threading.Event())
    upgrading.join(TIMEOUT_SECONDS)


FAILING = "jobs: {bad: {command: [sh, -c, \"printf 'no \\\\033[31mhunter22\\\\n' >&2; exit 3\"]}}\n"


def test_a_failed_run_is_logged_with_its_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tsuzuki.yaml").write_text(FAILING)
    token = {"TSUZUKI_COMMITS_GITLAB_TOKEN": "hunter22"}
    with (
        caplog.at_level(logging.INFO, logger="tsuzuki"),
        opened(cwd=tmp_path, environ={**os.environ, **token}) as application,
    ):
        application.jobs.apply()
        run_id = application.runs.submit(Request(job="bad"), audited=True).run_id
        with application.local_engine.ensure_running():
            application.runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS)
            wait_until(lambda: "run ended" in caplog.text, "its end is logged")
    (line,) = [message for message in caplog.messages if message.startswith("run ended")]
    assert f"run={run_id} job=bad state=FAILED" in line
    assert r"error=exit code 3: no \x1b[31m***" in line
