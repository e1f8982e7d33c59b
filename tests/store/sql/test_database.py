"""Transactions that are whole, on both databases, and what opening a database needs."""

import shutil
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import literal, select, text
from sqlalchemy.exc import DBAPIError

from support.databases import SqliteFolder, opened
from support.dialects import only_on_postgresql, only_on_sqlite
from support.factories import add_job, spec
from support.moving_clock import MovingClock
from support.threads import at_once, in_background
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import ConfigurationError, Unreachable, UsageError
from tsuzuki.store import jobs
from tsuzuki.store.sql import prepared
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.store.sql.sqlite import SYNCHRONOUS


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [job.spec.name for job in jobs.find(connection)]


def look(database: Database) -> None:
    with database.read() as connection:
        connection.execute(text("SELECT 1"))


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stumble", [KeyError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_nothing(
    database: Database, stumble: type[BaseException]
) -> None:
    def fail_half_way() -> None:
        with database.write() as connection:
            jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
            raise stumble

    with pytest.raises(stumble):
        fail_half_way()
    assert names(database) == []
    add_job(database, spec("b"))
    assert names(database) == ["b"]


@only_on_postgresql
@pytest.mark.parametrize("way", ["write", "statements"])
def test_a_transaction_whose_error_was_caught_is_not_committed_without_a_word(
    database: Database, way: str
) -> None:
    def catch_an_error() -> None:
        with getattr(database, way)() as connection:
            jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
            with suppress(DBAPIError):
                prepared.execute(connection, select(literal(1) / literal(0)))

    with pytest.raises(UsageError) as caught:
        catch_an_error()
    assert caught.value.specific_code == "transaction_failed"
    assert names(database) == []
    add_job(database, spec("b"))
    assert names(database) == ["b"]


def test_an_error_that_was_caught_in_a_savepoint_leaves_the_rest(database: Database) -> None:
    with database.write() as connection:
        jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
        with suppress(DBAPIError), connection.begin_nested():
            connection.execute(text("SELECT * FROM no_such_table"))
    assert names(database) == ["a"]


def test_a_write_inside_a_write_is_a_mistake_of_ours(database: Database) -> None:
    with database.write() as connection:
        jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
        with pytest.raises(RuntimeError, match="inside another"):
            add_job(database, spec("b"))
    assert names(database) == ["a"]
    add_job(database, spec("c"))
    assert names(database) == ["a", "c"]


def test_a_look_inside_a_write_sees_what_was_before_it(database: Database) -> None:
    with database.write() as connection:
        jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
        assert names(database) == []
    assert names(database) == ["a"]


def test_another_thread_may_write_and_waits_for_its_turn(database: Database) -> None:
    started_at = threading.Event()

    def second() -> int:
        started_at.set()
        return add_job(database, spec("b"))

    with database.write() as connection:
        other = in_background(second)
        assert started_at.wait(30)
        jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
    assert other.result(30)
    assert names(database) == ["a", "b"]


def test_the_databases_clock_is_the_one_that_was_given(
    database: Database, clock: MovingClock
) -> None:
    clock.advance(12.345678)
    with database.read() as connection:
        assert database.now(connection) == clock.now()


# --- URLs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "mysql://host/name",
        "postgresql://host:port/name",
        "postgresql://host/name?connect_timeout=soon",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///x.db?synchronous=perhaps",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_in_plain_words(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_database(url, clock=SystemClock())
    assert refused.value.specific_code == "database_url"
    assert refused.value.hint


# --- SQLite ---------------------------------------------------------------------------------------


@pytest.fixture
def file(sqlite_folder: SqliteFolder, tmp_path: Path) -> Path:
    """A migrated file with a name of its own."""
    return Path(shutil.copyfile(sqlite_folder.template(), tmp_path / "our own.db"))


@pytest.mark.parametrize("synchronous", SYNCHRONOUS)
def test_a_file_is_opened_as_safe_as_it_was_asked(file: Path, synchronous: str) -> None:
    levels = {"off": 0, "normal": 1, "full": 2, "extra": 3}
    with opened(f"sqlite:///{file}?synchronous={synchronous}") as database:
        assert database.path == file
        with database.read() as connection:
            answers = [
                connection.execute(text(f"PRAGMA {name}")).scalar_one()
                for name in ("synchronous", "journal_mode", "foreign_keys")
            ]
    assert answers == [levels[synchronous], "wal", 1]


def test_by_default_what_was_confirmed_is_on_the_disk(file: Path) -> None:
    with opened(f"sqlite:///{file}") as database, database.read() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2


def test_two_users_of_one_file_wait_for_each_other(file: Path) -> None:
    with opened(f"sqlite:///{file}") as one, opened(f"sqlite:///{file}") as two:
        with one.write() as connection:
            other = in_background(lambda: add_job(two, spec("b")))
            jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
        assert other.result(30)
        assert names(one) == names(two) == ["a", "b"]


def test_a_write_holds_the_file_from_its_first_moment_and_a_look_never_does(file: Path) -> None:
    """A process that reads and then writes must not find that another one wrote in between."""
    with (
        opened(f"sqlite:///{file}") as database,
        closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other,
    ):
        with database.read() as connection:
            connection.execute(text("SELECT count(*) FROM tsuzuki_job_runs"))
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        with database.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")


@only_on_sqlite
def test_writers_of_one_process_take_turns(database: Database) -> None:
    inside = []
    most = []

    def write(number: int) -> None:
        with database.write() as connection:
            inside.append(number)
            most.append(len(inside))
            jobs.add(connection, spec(f"job-{number}"), source=jobs.JobSource.FILE)
            inside.remove(number)

    at_once(8, write)
    assert max(most) == 1
    assert len(names(database)) == 8


# --- PostgreSQL -----------------------------------------------------------------------------------


TERMINATE_OTHERS = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@only_on_postgresql
def test_a_connection_lost_within_a_write_is_an_error_and_is_replaced(
    live_database: Database, database_url: str
) -> None:
    def lose_the_connection() -> None:
        with live_database.write() as connection, opened(database_url) as other:
            jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
            with other.write() as killer:
                assert killer.execute(TERMINATE_OTHERS).scalar_one() == 1
            jobs.add(connection, spec("b"), source=jobs.JobSource.FILE)

    with pytest.raises(Unreachable, match="is unavailable"):
        lose_the_connection()
    assert names(live_database) == []
    add_job(live_database, spec("c"))
    assert names(live_database) == ["c"]


@only_on_postgresql
def test_a_server_that_came_back_costs_at_most_one_attempt(
    live_database: Database, database_url: str
) -> None:
    at_once(5, lambda _: look(live_database))
    with opened(database_url) as other, other.write() as killer:
        killer.execute(TERMINATE_OTHERS)
    with suppress(Unreachable):
        look(live_database)
    for _ in range(10):
        look(live_database)
