"""Tsuzuki inside a program: asking inside one's own transaction, waiting, failing, canceling."""

import asyncio
import os
import re
import sys
import threading
from collections import UserDict
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text

from support.databases import all_components
from support.dialects import only_on_sqlite
from support.statement_recorder import recorded, writes
from support.waiting import wait_until
from tsuzuki import Request, RunContext, RunFailed, Tsuzuki, WaitTimedOut
from tsuzuki.engine import lock_watch
from tsuzuki.engine.log import fields_of
from tsuzuki.model.errors import ConfigurationError, Conflict, UsageError
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.store.schema.migrate import Component

TIMEOUT_SECONDS = 30.0


@pytest.fixture
def components() -> Sequence[Component]:
    return all_components()


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        yield app


def add(left: int, right: int) -> int:
    return left + right


async def greet(run: RunContext, name: str = "you") -> str:
    run.log(f"greeting {name}")
    return f"hello {name}"


def name_the_key(run: RunContext) -> str:
    return run.idempotency_key


def stumble() -> None:
    raise ValueError("over a stone")


def test_what_a_function_returns_is_the_result_of_its_run(app: Tsuzuki) -> None:
    app.job()(add)
    app.job()(greet)
    with app.running():
        sums = app.submit_many(
            [Request(job="add", arguments={"left": n, "right": n}) for n in range(20)]
        )
        assert (
            app.submit("greet", {"name": "Ada"}).result(timeout_seconds=TIMEOUT_SECONDS)
            == "hello Ada"
        )
        assert [run.result(timeout_seconds=TIMEOUT_SECONDS) for run in sums] == [
            n * 2 for n in range(20)
        ]


def test_a_function_that_no_other_process_can_import_is_refused(app: Tsuzuki) -> None:
    def inner() -> None: ...

    with pytest.raises(UsageError, match=r"inner is defined inside a function") as refused:
        app.job()(inner)
    assert "at the top level of a module" in str(refused.value.hint)


def test_a_function_that_raises_fails_its_run_and_the_result_says_so(app: Tsuzuki) -> None:
    app.job()(stumble)
    with app.running(), pytest.raises(RunFailed, match="over a stone"):
        app.submit("stumble").result(timeout_seconds=TIMEOUT_SECONDS)


def test_the_key_for_outside_services_is_the_callers_or_in_no_other_installation(
    app: Tsuzuki, tmp_path: Path
) -> None:
    keys = []
    with Tsuzuki(f"sqlite:///{tmp_path}/other.db", environ={}, cwd=tmp_path) as other:
        for installation in (app, other):
            installation.job()(name_the_key)
            with installation.running():
                handles = [
                    installation.submit("name_the_key", idempotency_key=key)
                    for key in (None, None, "order-7")
                ]
                assert [one.id for one in handles] == [1, 2, 3]
                results = [one.result(timeout_seconds=TIMEOUT_SECONDS) for one in handles]
            assert results.pop() == "order-7"
            keys += results
    assert len(set(keys)) == 4


def import_for_ever(run: RunContext) -> None:
    with run.transaction() as connection:
        while True:
            connection.execute(text("INSERT INTO imported VALUES (1)"))
            run.wait(0.01)


@only_on_sqlite
def test_a_transaction_that_takes_too_long_fails_its_run_alone(app: Tsuzuki) -> None:
    app.job()(import_for_ever)
    app.job()(add)
    with app.transaction() as connection:
        connection.execute(text("CREATE TABLE imported (n INTEGER)"))
    app._application.settings.set("transaction_seconds_max", 1)
    with app.running():
        importing = app.submit("import_for_ever")
        adding = app.submit("add", {"left": 1, "right": 1})
        with pytest.raises(RunFailed, match="transaction_too_long"):
            importing.result(timeout_seconds=TIMEOUT_SECONDS)
        assert adding.result(timeout_seconds=TIMEOUT_SECONDS) == 2
    with app.transaction() as connection:
        assert connection.execute(text("SELECT count(*) FROM imported")).scalar_one() == 0


@only_on_sqlite
def test_a_program_that_holds_the_write_lock_beside_its_engine_is_named(
    app: Tsuzuki, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock_watch, "HOLD_LONG_SECONDS", 0.2)
    app.job()(add)
    application = app._application

    def is_named() -> bool:
        holder = application.maintenance.lock_holder()
        return holder is not None and holder.since is not None

    with app.running():
        app.submit("add", {"left": 1, "right": 1}).result(timeout_seconds=TIMEOUT_SECONDS)
        with app.transaction():
            wait_until(is_named, "the holder is named")
            (found,) = [one for one in application.diagnosis.checks() if one.what == "database"]
        run = app.submit("add", {"left": 1, "right": 1})
        assert run.result(timeout_seconds=TIMEOUT_SECONDS) == 2
    pattern = rf"app\.transaction\(\) in process {os.getpid()} .* for \d+ s"
    assert re.match(pattern, found.found), found
    (logged,) = [fields for record in caplog.records if "purpose" in (fields := fields_of(record))]
    assert (logged["purpose"], logged["pid"]) == ("app.transaction()", os.getpid())
    assert logged["seconds"] >= 0.2


class SlowArguments(UserDict[str, int]):
    """Arguments that are read only after a signal."""

    def __init__(self, arguments: dict[str, int], wait: Callable[[], None]) -> None:
        self._wait = lambda: None
        super().__init__(arguments)
        self._wait = wait

    def __iter__(self) -> Iterator[str]:
        self._wait()
        return super().__iter__()


@only_on_sqlite
def test_many_runs_submitted_at_once_are_named_as_what_holds_the_write_lock(
    app: Tsuzuki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_watch, "HOLD_LONG_SECONDS", 0.2)
    app.define(
        "add", python=f"{__name__}:add"
    )  # by name, so that nothing reads the arguments before
    purposes = []

    def wait_until_named() -> None:
        def is_named() -> bool:
            holder = app._application.maintenance.lock_holder()
            if holder is None or holder.since is None:
                return False
            purposes.append(holder.purpose)
            return True

        wait_until(is_named, "the holder is named")

    with app.running():
        slow = SlowArguments({"left": 1, "right": 1}, wait_until_named)
        (run,) = app.submit_many([Request(job="add", arguments=slow)])
        assert run.result(timeout_seconds=TIMEOUT_SECONDS) == 2
    assert {*purposes} == {"submit_many()"}


class Meeting:
    """Two handlers without a context, on the event loop that they share."""

    app: Tsuzuki
    both_run = threading.Event()
    is_open = threading.Event()
    is_over = threading.Event()


async def wait_for(signal: threading.Event) -> None:
    assert await asyncio.to_thread(signal.wait, TIMEOUT_SECONDS)


async def write_and_await() -> None:
    await wait_for(Meeting.both_run)
    with Meeting.app.transaction() as connection:
        connection.execute(text("INSERT INTO imported VALUES (1)"))
        Meeting.is_open.set()
        await wait_for(Meeting.is_over)


async def write_beside() -> None:
    Meeting.both_run.set()
    await wait_for(Meeting.is_open)
    try:
        with Meeting.app.transaction() as connection:
            connection.execute(text("INSERT INTO imported VALUES (2)"))
            await asyncio.sleep(0)
    finally:
        Meeting.is_over.set()


def test_async_functions_that_share_a_loop_and_await_in_transactions_do_not_hang(
    app: Tsuzuki, dialect: str
) -> None:
    Meeting.app = app
    for signal in (Meeting.both_run, Meeting.is_open, Meeting.is_over):
        signal.clear()
    app.job()(write_and_await)
    app.job()(write_beside)
    with app.transaction() as connection:
        connection.execute(text("CREATE TABLE imported (n INTEGER)"))
    with app.running():
        first, second = app.submit("write_and_await"), app.submit("write_beside")
        if dialect == "sqlite":
            with pytest.raises(RunFailed, match="transaction_deadlock"):
                second.result(timeout_seconds=TIMEOUT_SECONDS)
        else:
            second.result(timeout_seconds=TIMEOUT_SECONDS)
        first.result(timeout_seconds=TIMEOUT_SECONDS)
    with app.transaction() as connection:
        found = connection.execute(text("SELECT n FROM imported")).scalars().all()
    assert sorted(found) == ([1] if dialect == "sqlite" else [1, 2])


def test_waiting_has_an_end_and_the_run_goes_on(app: Tsuzuki) -> None:
    app.job()(add)
    handle = app.submit("add", {"left": 1, "right": 1})
    with pytest.raises(WaitTimedOut):
        handle.result(timeout_seconds=0.05)
    with app.running():
        assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == 2


@pytest.mark.parametrize("ends_with", ["commit", "rollback"])
def test_a_run_and_an_event_asked_for_in_the_callers_own_transaction_share_its_fate(
    app: Tsuzuki, database_url: str, ends_with: str
) -> None:
    app.job()(add)
    app.job(on_event="paid")(greet)
    mine = own_engine(database_url)
    with mine.connect() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS orders (id INTEGER)"))
        connection.execute(text("INSERT INTO orders VALUES (7)"))
        handle = app.submit("add", {"left": 3, "right": 4}, connection=connection)
        app.emit("paid", {"order": 7}, dedupe_key="order-7", connection=connection)
        connection.commit() if ends_with == "commit" else connection.rollback()
    mine.dispose()
    stored = app._application
    if ends_with == "rollback":
        assert stored.events.find() == []
        assert app.submit("add", {"left": 1, "right": 1}, idempotency_key="first").is_new
        return
    with app.running():
        assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == 7
    assert [event.dedupe_key for event in stored.events.find()] == ["order-7"]


def own_engine(database_url: str, **options: Any) -> Engine:
    """Of a program that has its rows in the same database."""
    url = database_url.split("?synchronous", maxsplit=1)[0]
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"), **options)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_two_open_transactions_submit_at_the_same_time(app: Tsuzuki, database_url: str) -> None:
    app.job()(add)
    mine = own_engine(database_url, connect_args={"options": "-c lock_timeout=2000"})
    with (
        Tsuzuki(database_url, environ={}) as other,
        mine.connect() as first,
        mine.connect() as second,
    ):
        other.job(max_retries=2)(add)
        lost = app.submit("add", {"left": 1, "right": 1}, connection=first)
        kept = other.submit("add", {"left": 2, "right": 2}, connection=second)
        again = app.submit("add", {"left": 3, "right": 3}, connection=second)
        first.rollback()
        second.commit()
        assert lost.id not in {run.id for run in app._application.runs.find(RunFilter())}
        with app.running():
            assert kept.result(timeout_seconds=TIMEOUT_SECONDS) == 4
            assert again.result(timeout_seconds=TIMEOUT_SECONDS) == 6
    mine.dispose()


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_snapshot_that_is_older_than_the_job_can_submit_it(
    app: Tsuzuki, database_url: str, level: str
) -> None:
    app.job()(add)
    mine = own_engine(database_url, isolation_level=level)
    with mine.connect() as connection:
        connection.execute(text("SELECT 1 FROM pg_class LIMIT 1"))
        handle = app.submit("add", {"left": 1, "right": 1}, connection=connection)
        connection.commit()
    mine.dispose()
    with app.running():
        assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == 2


def test_a_job_that_is_stored_already_is_submitted_without_being_defined_again(
    app: Tsuzuki, database_url: str
) -> None:
    app.job()(add)
    app.submit("add", {"left": 1, "right": 1})
    with Tsuzuki(database_url, environ={}) as again, again.transaction() as connection:
        again.job()(add)
        with recorded(again._application.jobs._database) as statements:
            again.submit("add", {"left": 2, "right": 2}, connection=connection)
    assert writes(statements, "tsuzuki_job_definitions") == []
    assert [s for s in statements if "advisory" in s] == []


def test_a_job_that_is_defined_in_an_open_transaction_is_submitted_in_it(app: Tsuzuki) -> None:
    with app.transaction() as connection:
        app.job()(add)
        handle = app.submit("add", {"left": 2, "right": 2}, connection=connection)
    with app.running():
        assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == 4


def test_an_empty_key_is_refused(app: Tsuzuki) -> None:
    app.job()(add)
    with pytest.raises(UsageError) as refused:
        app.submit("add", {"left": 1, "right": 1}, idempotency_key="")
    assert refused.value.specific_code == "key_length"


def test_a_renamed_function_leaves_no_schedule_behind(app: Tsuzuki, database_url: str) -> None:
    rules: dict[str, Any] = {"type": "python", "schedule": "every 2s"}
    app.define("tidy", python=f"{__name__}:tidy", **rules)
    app.define("elsewhere", python="other.module:tidy", **rules)
    app.define("main", python="__main__:tidy", **rules)
    app.define("asked", python=f"{__name__}:gone", type="python")
    app.job(schedule="every 2s")(add)
    with app.running():
        enabled = {view.name: view.spec.enabled for view in app._application.jobs.find()}
    assert enabled == {
        "tidy": False,
        "elsewhere": True,
        "main": True,
        "asked": True,
        "add": True,
    }
    with Tsuzuki(database_url, environ={}) as again:
        again.define("tidy", python=f"{__name__}:tidy", **rules)
        again.emit("now")
        assert again._application.jobs.get("tidy").spec.enabled


def test_a_function_that_was_given_to_us_is_there_wherever_its_module_came_from(
    app: Tsuzuki,
) -> None:
    """Such as a plug-in that a program loads from a path, and does not list among its modules."""
    module = ModuleType("loaded_by_path")
    exec("def tidy(): return 'tidy'", module.__dict__)  # as a loader does
    app.job(schedule="every 1h")(module.tidy)
    with app.running():
        assert app._application.jobs.get("tidy").spec.enabled
        assert app.submit("tidy").result(timeout_seconds=TIMEOUT_SECONDS) == "tidy"


def test_a_schedule_stays_while_another_worker_may_have_its_function(
    app: Tsuzuki, database_url: str
) -> None:
    app.job(schedule="every 2s")(add)
    with app.running(), Tsuzuki(database_url, environ={}) as newer:
        newer.define("tidy", type="python", python=f"{__name__}:tidy", schedule="every 2s")
        newer.job()(greet)
        with newer.running(lead=False):
            assert newer._application.jobs.get("tidy").spec.enabled


def test_defining_the_same_job_again_changes_nothing(app: Tsuzuki, database_url: str) -> None:
    app.job(max_retries=2)(add)
    app.submit("add", {"left": 1, "right": 1})
    before = app._application.jobs.get("add").job
    with Tsuzuki(database_url, environ={}) as again:
        again.job(max_retries=2)(add)
        again.submit("add", {"left": 1, "right": 1})
    after = app._application.jobs.get("add").job
    assert before is not None
    assert after is not None
    assert before.version == after.version


def test_a_hundred_times_the_jobs_are_defined_with_a_few_statements_more(
    app: Tsuzuki, database_url: str
) -> None:
    sent: list[str] = []
    engine = app._application.jobs._database.engine

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    counts = []
    for jobs in (10, 1000):
        for number in range(jobs):
            app.define(f"job-{jobs}-{number}", command=["true"], schedule="every 1h")
        sent.clear()
        app.emit("now")
        counts.append(len(sent))
    assert counts[1] <= counts[0] + 4
    with Tsuzuki(database_url, environ={}) as again:
        found = {view.name: view for view in again._application.jobs.find()}
        assert len(found) == 1010
        assert found["job-1000-999"].schedule_words == "every hour"
        assert len(again._application.audit.find(limit=2000)) == 1010


def test_a_wrong_definition_is_told_where_it_is_written_and_the_others_stay(app: Tsuzuki) -> None:
    app.define("right", command=["true"])
    with pytest.raises(ConfigurationError, match="blue moon"):
        app.define("wrong", command=["true"], schedule="every blue moon")
    with pytest.raises(ConfigurationError, match="max_retry"):
        app.job(max_retry=3)(add)
    assert app.submit("right").is_new
    assert {view.name for view in app._application.jobs.find()} == {"right"}


def test_help_on_the_class_does_not_show_the_environment() -> None:
    assert "environ({" not in str(signature(Tsuzuki))


def in_main(app: Tsuzuki) -> None:
    app.define("work", python="__main__:work")
    app.submit("work")


def test_a_job_in_the_main_module_belongs_to_the_program_that_defined_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "current").symlink_to(tmp_path)
    script = str(tmp_path / "current" / "work.py")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", script, raising=False)
    with Tsuzuki(database_url, environ={}) as app:
        in_main(app)
        assert app._application.jobs.get("work").spec.options["program"] == script
    with Tsuzuki(database_url, environ={}, program="/moved/work.py") as other:
        with pytest.raises(Conflict) as refused:
            in_main(other)
        assert refused.value.specific_code == "job_of_other_program"
    with Tsuzuki(database_url, environ={}, program=script) as same:
        in_main(same)


def test_a_job_that_moves_from_the_main_module_to_another_is_changed(
    app: Tsuzuki, database_url: str
) -> None:
    in_main(app)
    with Tsuzuki(database_url, environ={}, program="/moved/work.py") as other:
        other.define("work", python="test_library:add")
        assert other.submit("work").is_new
