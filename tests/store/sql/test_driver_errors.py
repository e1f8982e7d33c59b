"""Driver errors: what the database cannot do is raised as `Unreachable`, in plain words."""

import shutil
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import OperationalError as SqlOperationalError

from support.databases import SqliteFolder, opened
from support.dialects import only_on_postgresql, only_on_sqlite
from support.factories import add_job, spec
from support.threads import in_background
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import ConfigurationError, NotPermitted, Unreachable
from tsuzuki.store import jobs
from tsuzuki.store.sql import sqlite as sqlite_module
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.store.sql.driver_errors import translate_errors


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [job.spec.name for job in jobs.find(connection)]


def look(database: Database) -> None:
    with database.read() as connection:
        connection.execute(text("SELECT 1"))


def error_of(database: Database) -> Unreachable:
    with pytest.raises(Unreachable) as raised:
        add_job(database)
    assert raised.value.specific_code == "database"
    assert raised.value.hint
    return raised.value


def test_a_violated_constraint_is_not_called_unreachable(database: Database) -> None:
    add_job(database, spec("a"))
    with pytest.raises(IntegrityError):
        add_job(database, spec("a"))
    with pytest.raises(ZeroDivisionError), database.write():
        _ = 1 / 0


def test_a_mistake_in_a_statement_is_not_the_databases_fault(database: Database) -> None:
    """Or a handler with a mistake in it would be retried as if the database were unreachable."""
    with pytest.raises(DBAPIError), database.write() as connection:
        connection.execute(text("SELECT * FROM nowhere"))


# --- SQLite ---------------------------------------------------------------------------------------


@pytest.fixture
def file(sqlite_folder: SqliteFolder, tmp_path: Path) -> Path:
    """A migrated file with a name of its own."""
    return Path(shutil.copyfile(sqlite_folder.template(), tmp_path / "our own.db"))


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
def test_a_path_that_is_no_database_is_an_error_in_plain_words(
    no_database: dict[str, Path], kind: str, words: str
) -> None:
    url = f"sqlite:///{no_database[kind]}"
    with closing(open_database(url, clock=SystemClock())) as database:
        problem = error_of(database)
        with pytest.raises(Unreachable):
            look(database)
    assert problem.message == f"the database {no_database[kind]} {words}"
    assert problem.retry_after_seconds is None


def test_a_read_only_file_is_named_as_read_only(file: Path) -> None:
    with opened(f"sqlite:///file:{file}?mode=ro&uri=true") as database:
        assert names(database) == []
        problem = error_of(database)
        assert "is read-only" in problem.message
        assert problem.retry_after_seconds is None


def test_a_full_disk_is_named_and_what_was_there_stays(file: Path) -> None:
    with opened(f"sqlite:///{file}") as database:
        add_job(database, spec("a"))

        def no_more_pages(raw: sqlite3.Connection, _record: object) -> None:
            raw.execute("PRAGMA max_page_count = 1")  # SQLite makes it what there is already

        event.listen(database.engine, "connect", no_more_pages)
        database.engine.dispose()
        huge = spec("b", description="x" * 1_000_000)
        with pytest.raises(Unreachable, match="is out of disk space"):
            add_job(database, huge)
        assert names(database) == ["a"]


def test_a_corrupt_file_is_named_as_damaged(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with closing(open_database(f"sqlite:///{file}", clock=SystemClock())) as database:
        assert "is damaged" in error_of(database).message


def test_a_lock_timeout_names_the_lock_of_another_writer(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "LOCK_TIMEOUT_SECONDS", 0.05)
    with opened(f"sqlite:///{file}") as database, closing(sqlite3.connect(file)) as other:
        look(database)
        other.execute("BEGIN IMMEDIATE")
        problem = error_of(database)
        assert "stayed locked by another writer" in problem.message
        assert problem.retry_after_seconds
        assert names(database) == []
        other.rollback()
        add_job(database, spec("a"))
        assert names(database) == ["a"]


# --- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture
def closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def test_a_server_that_is_down_is_an_error_quickly_and_without_the_password(
    closed_port: int,
) -> None:
    clock = SystemClock()
    started_at = clock.monotonic()
    for where in (
        f"ada:s3cret@127.0.0.1:{closed_port}/name",
        f"127.0.0.1:{closed_port}/name?user=ada&password=s3cret",
        f"ada:s3cret@127.0.0.1:{closed_port}/name?sslpassword=s3cret",
    ):
        with closing(open_database(f"postgresql://{where}", clock=clock)) as database:
            problem = error_of(database)
        assert f"127.0.0.1:{closed_port}/name" in problem.message
        assert "is unavailable" in problem.message
        assert "s3cret" not in str(problem.as_dict())
        assert problem.retry_after_seconds
        assert not problem.permanent
    assert clock.monotonic() - started_at < 15


@only_on_postgresql
def test_a_database_that_the_server_does_not_have_is_named(database_url: str) -> None:
    name = database_url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    elsewhere = database_url.replace(name, "missing")
    with closing(open_database(elsewhere, clock=SystemClock())) as database:
        assert '"missing" does not exist' in error_of(database).message


@only_on_postgresql
def test_what_a_user_may_not_do_is_named_and_no_outage(live_database: Database) -> None:
    as_guest = "CREATE ROLE guest; SET LOCAL ROLE guest; CREATE SCHEMA theirs"
    with pytest.raises(NotPermitted) as raised, live_database.write() as connection:
        connection.execute(text(as_guest))
    assert "permission denied" in raised.value.message
    assert "GRANT" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("url", "guess"),
    [
        ("postgresql+psycopg://h/d?sslmod=require", '"sslmode"'),
        ("sqlite:////tmp/x.db?synchronus=full", '"synchronous"'),
    ],
)
def test_a_parameter_that_is_not_known_is_refused(url: str, guess: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_database(url, clock=SystemClock())
    assert raised.value.specific_code == "database_url"
    assert guess in (raised.value.hint or "")


def test_no_value_of_a_statement_is_in_an_error(database: Database) -> None:
    with pytest.raises(DBAPIError) as raised, database.read() as connection:
        connection.execute(text("SELECT * FROM missing WHERE a = :a"), {"a": "hunter2"})
    assert "hunter2" not in str(raised.value)


@only_on_postgresql
def test_a_read_only_server_is_named_as_read_only(live_database: Database) -> None:
    name = live_database.engine.url.database
    with live_database.write() as connection:
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    live_database.engine.dispose()
    assert names(live_database) == []
    assert "is read-only" in error_of(live_database).message


@only_on_postgresql
def test_a_deadlock_is_named_and_not_called_no_answer(
    live_database: Database,
) -> None:
    ids = [add_job(live_database, spec(name)) for name in "ab"]
    both_hold_one = threading.Barrier(2)

    def take(first: int, second: int) -> str:
        touch = text("UPDATE tsuzuki_job_definitions SET version = version + 1 WHERE id = :id")
        try:
            with live_database.write() as connection:
                connection.execute(touch, {"id": first})
                both_hold_one.wait(30)
                connection.execute(touch, {"id": second})
        except Unreachable as problem:
            return problem.message
        return "done"

    other = in_background(lambda: take(*reversed(ids)))
    done, error = sorted([take(*ids), other.result(30)])
    assert done == "done"
    assert "deadlock" in error


def test_a_server_without_free_connections_is_named() -> None:
    said = psycopg.OperationalError("connection failed: FATAL:  sorry, too many clients already")
    with (
        pytest.raises(Unreachable, match="has no free connection") as raised,
        translate_errors(make_url("postgresql://host/name")),
    ):
        raise SqlOperationalError(None, None, said)
    assert "max_connections" in (raised.value.hint or "")


@only_on_postgresql
def test_a_statement_timeout_is_named(live_database: Database) -> None:
    def take_too_long() -> None:
        with live_database.write() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 1"))
            connection.execute(text("SELECT pg_sleep(30)"))

    with pytest.raises(Unreachable, match="statement timeout"):
        take_too_long()


@only_on_postgresql
def test_more_parameters_than_a_statement_may_have_are_not_called_an_outage(
    live_database: Database,
) -> None:
    values = {f"p{n}": n for n in range(65_536)}
    row = ", ".join(f":{name}" for name in values)
    with pytest.raises(SqlOperationalError), live_database.read() as connection:
        connection.execute(text(f"SELECT 1 WHERE 1 IN ({row})"), values)
    look(live_database)


@only_on_postgresql
def test_a_value_too_large_for_an_index_is_not_called_an_outage(live_database: Database) -> None:
    value = "SELECT string_agg(md5(n::text), '') FROM generate_series(1, 2000) AS n"
    with live_database.write() as connection:
        connection.execute(text("CREATE TABLE keys (id text PRIMARY KEY)"))
    with pytest.raises(SqlOperationalError), live_database.write() as connection:
        connection.execute(text("INSERT INTO keys " + value))
    look(live_database)


@only_on_sqlite
def test_a_value_longer_than_sqlite_allows_is_not_called_an_outage(database: Database) -> None:
    with pytest.raises(DataError), database.write() as connection:
        connection.execute(text("SELECT zeroblob(2000000000)"))
