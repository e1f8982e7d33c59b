"""SQLite's write-ahead log: a long one is emptied when no reader needs it, without waiting."""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import text

from tsuzuki.store.sql import sqlite
from tsuzuki.store.sql.database import Database


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAL_KEPT_BYTES", 200_000)


def write_much(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS filled (body BLOB)"))
        connection.execute(text("INSERT INTO filled VALUES (zeroblob(1000000))"))


def test_a_long_log_is_emptied_once_the_reader_has_gone(database: Database) -> None:
    with closing(sqlite3.connect(str(database.path), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tsuzuki_job_runs").fetchone()
        write_much(database)
        before = database.wal_bytes
        database.shorten_wal()
        assert database.wal_bytes == before > 1_000_000
    database.shorten_wal()
    assert database.wal_bytes == 0
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM filled")).scalar_one() == 1


def test_beside_a_writer_it_stays_and_is_not_waited_for(database: Database) -> None:
    write_much(database)
    before = database.wal_bytes
    with closing(sqlite3.connect(str(database.path), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        database.shorten_wal()
        writer.execute("ROLLBACK")
    assert database.wal_bytes == before


def test_a_short_log_is_left_for_the_next_writes(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("CREATE TABLE small (id INTEGER)"))
    before = database.wal_bytes
    database.shorten_wal()
    assert database.wal_bytes == before > 0


def test_a_file_that_was_deleted_is_not_made_again_from_its_log(database: Database) -> None:
    write_much(database)
    assert database.path is not None
    database.path.unlink()
    database.shorten_wal()
    assert not database.is_write_locked()
    assert not database.path.exists()
