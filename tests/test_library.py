"""Tsuzuki inside a program: asking inside one's own transaction, waiting, failing, canceling."""

from collections.abc import Iterator, Sequence
from inspect import signature
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, text

from support.databases import all_components
from tsuzuki import Request, RunContext, RunFailed, Tsuzuki, WaitTimedOut
from tsuzuki.model.errors import ConfigurationError, UsageError
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

    with pytest.raises(UsageError, match=r"inner is a function inside a function") as refused:
        app.job()(inner)
    assert "at the top of a module" in str(refused.value.hint)


def test_a_function_that_raises_fails_its_run_and_the_result_says_so(app: Tsuzuki) -> None:
    app.job()(stumble)
    with app.running(), pytest.raises(RunFailed, match="over a stone"):
        app.submit("stumble").result(timeout_seconds=TIMEOUT_SECONDS)


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
    mine = create_engine(
        database_url.split("?synchronous", maxsplit=1)[0].replace(
            "postgresql://", "postgresql+psycopg://"
        )
    )
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
