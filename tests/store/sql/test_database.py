"""The two ways in: transactions that are whole, and troubles told in our own words."""

import shutil
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import OperationalError as SqlOperationalError

from support.databases import SqliteFolder, opened
from support.dialects import only_on_postgresql, only_on_sqlite
from support.factories import add_job, spec
from support.moving_clock import MovingClock
from support.threads import at_once, in_background
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import ConfigurationError, Unreachable
from tsuzuki.store import jobs
from tsuzuki.store.sql import sqlite as sqlite_module
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.store.sql.driver_errors import translate_errors
from tsuzuki.store.sql.sqlite import SYNCHRONOUS


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [job.spec.name for job in jobs.find(connection)]


def look(database: Database) -> None:
    with database.read() as connection:
        connection.execute(text("SELECT 1"))


def complaint(database: Database) -> Unreachable:
    with pytest.raises(Unreachable) as raised:
        add_job(database)
    assert raised.value.specific_code == "database"
    assert raised.value.hint
    return raised.value


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


def test_another_thread_may_write_and_gets_its_turn(database: Database) -> None:
    begun = threading.Event()

    def second() -> int:
        begun.set()
        return add_job(database, spec("b"))

    with database.write() as connection:
        other = in_background(second)
        assert begun.wait(30)
        jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
    assert other.result(30)
    assert names(database) == ["a", "b"]


def test_what_the_rules_refuse_is_not_called_unreachable(database: Database) -> None:
    add_job(database, spec("a"))
    with pytest.raises(IntegrityError):
        add_job(database, spec("a"))
    with pytest.raises(ZeroDivisionError), database.write():
        _ = 1 / 0


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
def test_a_url_that_cannot_be_used_is_refused_in_our_words(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_database(url, clock=SystemClock())
    assert refused.value.specific_code == "database_url"
    assert refused.value.hint


# --- SQLite ---------------------------------------------------------------------------------------


@pytest.fixture
def file(sqlite_folder: SqliteFolder, tmp_path: Path) -> Path:
    """A migrated file with a name of its own."""
    return Path(shutil.copyfile(sqlite_folder.template, tmp_path / "our own.db"))


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


@pytest.fixture
def no_database(tmp_path: Path) -> Iterator[dict[str, Path]]:
    (tmp_path / "letter.txt").write_text("Dear database, " * 100)
    (tmp_path / "folder").mkdir()
    yield {
        "a missing folder": tmp_path / "missing" / "x.db",
        "a path through a file": tmp_path / "letter.txt" / "x.db",
        "a folder": tmp_path / "folder",
        "a text": tmp_path / "letter.txt",
    }
    assert (tmp_path / "letter.txt").read_text() == "Dear database, " * 100


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("a missing folder", "cannot be opened"),
        ("a path through a file", "cannot be opened"),
        ("a folder", "cannot be opened"),
        ("a text", "is not an SQLite database"),
    ],
)
def test_what_is_no_database_is_told_so(
    no_database: dict[str, Path], kind: str, words: str
) -> None:
    url = f"sqlite:///{no_database[kind]}"
    with closing(open_database(url, clock=SystemClock())) as database:
        problem = complaint(database)
        with pytest.raises(Unreachable):
            look(database)
    assert problem.message == f"the database {no_database[kind]} {words}"


def test_a_file_that_may_not_be_written_is_told_so(file: Path) -> None:
    with opened(f"sqlite:///file:{file}?mode=ro&uri=true") as database:
        assert names(database) == []
        assert "is read-only" in complaint(database).message


def test_a_full_disk_is_told_so_and_what_was_there_stays(file: Path) -> None:
    with opened(f"sqlite:///{file}") as database:
        add_job(database, spec("a"))

        def no_more_pages(raw: sqlite3.Connection, _record: object) -> None:
            raw.execute("PRAGMA max_page_count = 1")  # SQLite makes it what there is already

        event.listen(database.engine, "connect", no_more_pages)
        database.engine.dispose()
        huge = spec("b", description="x" * 1_000_000)
        with pytest.raises(Unreachable, match="has no room left"):
            add_job(database, huge)
        assert names(database) == ["a"]


def test_a_damaged_file_is_told_so(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with closing(open_database(f"sqlite:///{file}", clock=SystemClock())) as database:
        assert "is damaged" in complaint(database).message


def test_a_file_that_somebody_holds_for_too_long_is_told_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "BUSY_SECONDS", 0.05)
    with opened(f"sqlite:///{file}") as database, closing(sqlite3.connect(file)) as other:
        look(database)
        other.execute("BEGIN IMMEDIATE")
        assert "stayed locked by another writer" in complaint(database).message
        assert names(database) == []
        other.rollback()
        add_job(database, spec("a"))
        assert names(database) == ["a"]


def test_two_users_of_one_file_wait_for_each_other(file: Path) -> None:
    with opened(f"sqlite:///{file}") as one, opened(f"sqlite:///{file}") as two:
        with one.write() as connection:
            other = in_background(lambda: add_job(two, spec("b")))
            jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
        assert other.result(30)
        assert names(one) == names(two) == ["a", "b"]


def test_a_write_holds_the_file_from_its_first_moment_and_a_look_never_does(file: Path) -> None:
    """Whoever reads first and writes then must not find in between that somebody else wrote."""
    with (
        opened(f"sqlite:///{file}") as database,
        closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other,
    ):
        with database.read() as connection:
            connection.execute(text("SELECT count(*) FROM job_runs"))
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


@pytest.fixture
def closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def test_a_server_that_is_not_there_is_told_so_quickly_and_without_the_password(
    closed_port: int,
) -> None:
    clock = SystemClock()
    begun = clock.monotonic()
    for where in (
        f"ada:s3cret@127.0.0.1:{closed_port}/name",
        f"127.0.0.1:{closed_port}/name?user=ada&password=s3cret",
        f"ada:s3cret@127.0.0.1:{closed_port}/name?sslpassword=s3cret",
    ):
        with closing(open_database(f"postgresql://{where}", clock=clock)) as database:
            problem = complaint(database)
        assert f"127.0.0.1:{closed_port}/name" in problem.message
        assert "does not answer" in problem.message
        assert "s3cret" not in str(problem.as_dict())
        assert problem.retry_after_seconds
        assert not problem.permanent
    assert clock.monotonic() - begun < 15


@only_on_postgresql
def test_a_name_the_server_does_not_know_is_told_so(database_url: str) -> None:
    name = database_url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    elsewhere = database_url.replace(name, "nobodys")
    with closing(open_database(elsewhere, clock=SystemClock())) as database:
        assert '"nobodys" does not exist' in complaint(database).message


@only_on_postgresql
def test_a_server_that_may_only_be_read_is_told_so(live_database: Database) -> None:
    name = live_database.engine.url.database
    with live_database.write() as connection:
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    live_database.engine.dispose()
    assert names(live_database) == []
    assert "is read-only" in complaint(live_database).message


@only_on_postgresql
def test_two_that_wait_for_each_other_are_not_told_that_nobody_answers(
    live_database: Database,
) -> None:
    ids = [add_job(live_database, spec(name)) for name in "ab"]
    both_hold_one = threading.Barrier(2)

    def take(first: int, second: int) -> str:
        touch = text("UPDATE job_definitions SET version = version + 1 WHERE id = :id")
        try:
            with live_database.write() as connection:
                connection.execute(touch, {"id": first})
                both_hold_one.wait(30)
                connection.execute(touch, {"id": second})
        except Unreachable as problem:
            return problem.message
        return "done"

    other = in_background(lambda: take(*reversed(ids)))
    done, told = sorted([take(*ids), other.result(30)])
    assert done == "done"
    assert "deadlock" in told


def test_a_server_that_has_no_connection_left_is_told_so() -> None:
    said = psycopg.OperationalError("connection failed: FATAL:  sorry, too many clients already")
    with (
        pytest.raises(Unreachable, match="has no connection left") as told,
        translate_errors(make_url("postgresql://host/name")),
    ):
        raise SqlOperationalError(None, None, said)
    assert "max_connections" in (told.value.hint or "")


def test_a_mistake_in_a_statement_is_not_the_databases_fault(database: Database) -> None:
    """Or a handler with a mistake in it would be repeated as if nobody had answered."""
    with pytest.raises(DBAPIError), database.write() as connection:
        connection.execute(text("SELECT * FROM nowhere"))


@only_on_postgresql
def test_a_statement_that_the_server_ends_is_told_so(live_database: Database) -> None:
    def take_too_long() -> None:
        with live_database.write() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 1"))
            connection.execute(text("SELECT pg_sleep(30)"))

    with pytest.raises(Unreachable, match="statement timeout"):
        take_too_long()


INTERRUPTED = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@only_on_postgresql
def test_a_connection_that_is_cut_within_a_write_is_told_so_and_replaced(
    live_database: Database, database_url: str
) -> None:
    def cut_half_way() -> None:
        with live_database.write() as connection, opened(database_url) as other:
            jobs.add(connection, spec("a"), source=jobs.JobSource.FILE)
            with other.write() as killer:
                assert killer.execute(INTERRUPTED).scalar_one() == 1
            jobs.add(connection, spec("b"), source=jobs.JobSource.FILE)

    with pytest.raises(Unreachable, match="does not answer"):
        cut_half_way()
    assert names(live_database) == []
    add_job(live_database, spec("c"))
    assert names(live_database) == ["c"]


@only_on_postgresql
def test_a_server_that_came_back_costs_at_most_one_attempt(
    live_database: Database, database_url: str
) -> None:
    at_once(5, lambda _: look(live_database))
    with opened(database_url) as other, other.write() as killer:
        killer.execute(INTERRUPTED)
    with suppress(Unreachable):
        look(live_database)
    for _ in range(10):
        look(live_database)
