"""Submitting in the caller's own transaction: the run exists if and only if that commits."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from tsuzuki import Tsuzuki
from tsuzuki.model.errors import UsageError
from tsuzuki.model.run_filter import RunFilter

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        yield app


def double(number: int) -> int:
    return 2 * number


def sqlalchemy_url(database_url: str) -> str:
    url = database_url.split("?synchronous", maxsplit=1)[0]
    return url.replace("postgresql://", "postgresql+psycopg://")


def raw_connection(database_url: str) -> Any:
    """The driver's own, with rows that are no tuples."""
    if database_url.startswith("sqlite"):
        raw = sqlite3.connect(database_url.removeprefix("sqlite:///").partition("?")[0])
        raw.row_factory = sqlite3.Row
        return raw
    return psycopg.connect(database_url, row_factory=dict_row)


@dataclass
class AtomicBlock:
    """What `django.db.connection` is inside and outside of `transaction.atomic()`."""

    connection: Any
    in_atomic_block: bool = True

    def ensure_connection(self) -> None: ...

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()


def a_session(url: str) -> Any:
    return Session(create_engine(sqlalchemy_url(url), poolclass=NullPool))


def a_scoped_session(url: str) -> Any:
    return scoped_session(sessionmaker(create_engine(sqlalchemy_url(url), poolclass=NullPool)))


CALLERS: list[Callable[[str], Any]] = [
    a_session,
    a_scoped_session,
    raw_connection,
    lambda url: AtomicBlock(raw_connection(url)),
]


@pytest.mark.parametrize("caller", CALLERS)
def test_a_run_shares_the_fate_of_the_callers_transaction(
    app: Tsuzuki, database_url: str, caller: Callable[[str], Any]
) -> None:
    job = app.job(double)
    with closing(caller(database_url)) as mine:
        lost = job.options(connection=mine).submit(1)
        mine.rollback()
        kept = job.options(connection=mine, idempotency_key="k").submit(2)
        same = job.options(connection=mine, idempotency_key="k").submit(2)
        many = job.submit_many([job.call(3), job.call(4)], connection=mine)
        app.emit("doubled", {"number": 2}, connection=mine)
        mine.commit()
    assert kept.id == same.id
    stored = {run.id for run in app._application.runs.find(RunFilter())}
    assert stored == {kept.id, *(one.id for one in many)}
    assert lost.is_new
    with app.running():
        results = [one.result(timeout_seconds=TIMEOUT_SECONDS) for one in (kept, *many)]
    assert results == [4, 6, 8]
    assert len(app._application.events.find()) == 1


@pytest.mark.parametrize("caller", CALLERS)
def test_rows_of_the_caller_are_in_the_same_transaction(
    app: Tsuzuki, database_url: str, caller: Callable[[str], Any]
) -> None:
    job = app.job(double)
    job.submit(0)
    with closing(raw_connection(database_url)) as raw:
        raw.execute("CREATE TABLE orders (id INTEGER)")
        raw.commit()
    with closing(caller(database_url)) as mine:
        statement: Any = "INSERT INTO orders VALUES (7)"
        execute = getattr(mine, "connection", mine) if isinstance(mine, AtomicBlock) else mine
        is_ours = isinstance(execute, Session | scoped_session)
        execute.execute(text(statement) if is_ours else statement)
        job.options(connection=mine).submit(1)
        mine.commit()
    with closing(raw_connection(database_url)) as raw:
        assert len(raw.execute("SELECT id FROM orders").fetchall()) == 1
    assert len(app._application.runs.find(RunFilter())) == 2


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize("ends_with", ["commit", "rollback"])
def test_an_async_session_submits_in_its_transaction(
    app: Tsuzuki, database_url: str, ends_with: str
) -> None:
    job = app.job(double)

    async def main() -> int:
        engine = create_async_engine(sqlalchemy_url(database_url))
        async with AsyncSession(engine) as session, engine.connect() as connection:
            first = await job.options(connection=session).submit_async(1)
            await job.options(connection=connection).submit_async(2)
            await session.commit() if ends_with == "commit" else await session.rollback()
        await engine.dispose()
        return first.id

    first_id = asyncio.run(main())
    stored = [run.id for run in app._application.runs.find(RunFilter())]
    assert stored == ([first_id] if ends_with == "commit" else [])


def refusal(app: Tsuzuki, connection: Any) -> str:
    with pytest.raises(UsageError) as refused:
        app.submit("double", {"number": 1}, connection=connection)
    assert refused.value.hint
    return refused.value.specific_code


def test_a_connection_without_a_transaction_is_refused(app: Tsuzuki, database_url: str) -> None:
    app.job(double)
    with closing(raw_connection(database_url)) as raw:
        if isinstance(raw, sqlite3.Connection):
            raw.isolation_level = None
        else:
            raw.autocommit = True
        assert refusal(app, raw) == "connection_autocommit"
        assert refusal(app, AtomicBlock(raw, in_atomic_block=False)) == "connection_autocommit"
        raw.execute("BEGIN")
        handle = app.submit("double", {"number": 1}, connection=raw)
        raw.execute("COMMIT")
    assert not handle.state().is_final
    engine = create_engine(sqlalchemy_url(database_url), isolation_level="AUTOCOMMIT")
    with engine.connect() as each, Session(engine) as session:
        assert refusal(app, each) == "connection_autocommit"
        assert refusal(app, session) == "connection_autocommit"
    engine.dispose()


def test_another_database_or_object_is_refused(app: Tsuzuki, tmp_path: Path) -> None:
    app.job(double)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        assert refusal(app, other) == "connection_other_database"
    assert refusal(app, object()) == "connection_unknown"


def test_an_async_connection_is_refused_by_a_sync_call(app: Tsuzuki, database_url: str) -> None:
    app.job(double)
    engine = create_async_engine("postgresql+psycopg://nobody@localhost/nothing")
    assert refusal(app, AsyncSession(engine)) == "connection_async"
