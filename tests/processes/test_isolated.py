"""Isolated functions under a whole engine, on both databases: their transactions, and the ends that they come to."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from support.waiting import wait_until
from tsuzuki import RunFailed, Tsuzuki
from tsuzuki.model.run import Run

TIMEOUT_SECONDS = 60.0

SOURCE = """
    import os, signal, threading, time
    from sqlalchemy import text

    def write(run, *, then="return"):
        run.progress(1, 2)
        with run.transaction() as connection:
            connection.execute(text("INSERT INTO ledger VALUES (:run)"), {"run": run.id})
            run.progress(2, 2)
            for number in range(5000):
                print("in the transaction", number, "x" * 100)
        if then == "die":
            os._exit(9)
        return "written"

    def hold(run):
        with run.transaction() as connection:
            connection.execute(text("INSERT INTO ledger VALUES (:run)"), {"run": run.id})
            run.log("holding")
            while True:
                time.sleep(60)

    def sleep_long(run):
        with run.transaction() as connection:
            connection.execute(text("SELECT pg_sleep(600)"))

    def leave_a_thread(run):
        is_open = threading.Event()
        def writes():
            with run.transaction() as connection:
                connection.execute(text("INSERT INTO ledger VALUES (:run)"), {"run": run.id})
                is_open.set()
                time.sleep(600)
        threading.Thread(target=writes, daemon=True).start()
        is_open.wait()
        return "returned"

    def fork_and_write(run):
        pid = os.fork()
        if pid == 0:
            try:
                with run.transaction():
                    pass
            except Exception as problem:
                run.log(str(problem))
            return
        os.waitpid(pid, 0)

    def waits(run):
        run.progress(1)
        run.wait(600)

    def endless():
        while True:
            pass
"""


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    (tmp_path / "ledger_work.py").write_text(textwrap.dedent(SOURCE))
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        with app.transaction() as connection:
            connection.execute(text("CREATE TABLE ledger (run BIGINT)"))
        for name in ("write", "hold", "leave_a_thread", "fork_and_write", "endless"):
            app.define(name, python=f"ledger_work:{name}", isolation="process")
        yield app


def ledger(app: Tsuzuki) -> list[int]:
    with app.transaction() as connection:
        return [row.run for row in connection.execute(text("SELECT run FROM ledger ORDER BY run"))]


def found(app: Tsuzuki, run_id: int) -> Run:
    return app._application.runs.get(run_id).run


def test_rows_and_progress_are_committed_on_the_childs_own_connection(app: Tsuzuki) -> None:
    with app.running():
        handles = [app.submit("write") for _ in range(3)]
        assert {one.result(timeout_seconds=TIMEOUT_SECONDS) for one in handles} == {"written"}
    assert ledger(app) == [one.id for one in handles]
    runs = [found(app, one.id) for one in handles]
    assert {(run.progress_processed, run.progress_total) for run in runs} == {(2, 2)}


def test_what_was_committed_before_a_crash_is_there_once_and_the_run_has_crashed(
    app: Tsuzuki,
) -> None:
    with app.running():
        handle = app.submit("write", {"then": "die"})
        with pytest.raises(RunFailed) as failed:
            handle.result(timeout_seconds=TIMEOUT_SECONDS)
    assert failed.value.run.reason == "crashed"
    assert ledger(app) == [handle.id]


def test_a_transaction_of_a_run_that_was_killed_ends_with_its_process(app: Tsuzuki) -> None:
    app._application.settings.set("kill_grace_seconds", 0.2)
    app.define("hold", python="ledger_work:hold", isolation="process", timeout=1)
    with app.running():
        handle = app.submit("hold")
        assert handle.wait(timeout_seconds=TIMEOUT_SECONDS).state == "TIMED_OUT"
        assert app.submit("write").result(timeout_seconds=TIMEOUT_SECONDS) == "written"
    assert handle.id not in ledger(app)


def is_asleep(app: Tsuzuki) -> bool:
    """Whether the server executes the statement."""
    sleeping = text("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'")
    with app.transaction() as connection:
        return connection.execute(sleeping).first() is not None


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize("name", ["", "&application_name=of-the-url"])
def test_a_statement_that_a_killed_process_has_left_on_the_server_is_ended(
    database_url: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / "ledger_work.py").write_text(textwrap.dedent(SOURCE))
    with Tsuzuki(database_url + name, environ={}, cwd=tmp_path) as app:
        app._application.settings.set("kill_grace_seconds", 0.2)
        app.define("sleep", python="ledger_work:sleep_long", isolation="process")
        with app.running():
            handle = app.submit("sleep")
            wait_until(lambda: is_asleep(app), "started", timeout_seconds=TIMEOUT_SECONDS)
            handle.cancel()
            assert handle.wait(timeout_seconds=TIMEOUT_SECONDS).state == "CANCELED"
            assert not is_asleep(app)


def test_a_transaction_of_a_thread_that_a_function_left_behind_is_rolled_back(app: Tsuzuki) -> None:
    with app.running():
        left = app.submit("leave_a_thread")
        assert left.result(timeout_seconds=TIMEOUT_SECONDS) == "returned"
        assert app.submit("write").result(timeout_seconds=TIMEOUT_SECONDS) == "written"
    assert left.id not in ledger(app)


def test_an_endless_loop_is_killed_when_its_run_is_canceled(app: Tsuzuki) -> None:
    app._application.settings.set("kill_grace_seconds", 0.2)
    with app.running():
        handle = app.submit("endless")
        wait_until(lambda: found(app, handle.id).state == "RUNNING", "started")
        handle.cancel()
        assert handle.wait(timeout_seconds=TIMEOUT_SECONDS).state == "CANCELED"


def test_a_forked_process_of_a_function_cannot_open_its_transaction(app: Tsuzuki) -> None:
    with app.running():
        app.submit("fork_and_write").result(timeout_seconds=TIMEOUT_SECONDS)


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_the_live_stack_of_a_function_is_told_on_request(app: Tsuzuki, isolation: str) -> None:
    app.define("waits", python="ledger_work:waits", isolation=isolation)
    runs = app._application.runs
    with app.running():
        handle = app.submit("waits")
        wait_until(lambda: found(app, handle.id).progress_processed == 1, "there")
        told = runs.stack(handle.id)
        handle.cancel()
        handle.wait(timeout_seconds=TIMEOUT_SECONDS)
    assert told is not None
    assert "in waits" in told.stack
    assert runs.stack(handle.id) is None
