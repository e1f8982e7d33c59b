"""An SQLite file that was deleted or replaced: nothing is confirmed any more."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from support.dialects import only_on_sqlite
from tsuzuki.model.errors import DatabaseReplaced
from tsuzuki.store.sql.connection_pool import pool_of
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.store.sql.file_identity import FileIdentity


def write(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS written (n INTEGER)"))


def send(database: Database) -> None:
    with database.statement() as connection:
        connection.send("CREATE TABLE IF NOT EXISTS sent (n INTEGER)")


@only_on_sqlite
@pytest.mark.parametrize("how", [write, send])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_no_write_is_confirmed_on_a_file_that_is_gone(
    database: Database, how: Callable[[Database], None], is_replaced: bool
) -> None:
    assert database.path is not None
    how(database)
    moved = database.path.rename(database.path.with_name("moved.db"))
    if is_replaced:
        database.path.touch()
    with pytest.raises(DatabaseReplaced):
        how(database)
    assert database.replaced is not None
    moved.replace(database.path)
    with pytest.raises(DatabaseReplaced):
        how(database)


@only_on_sqlite
@pytest.mark.parametrize("how", [write, send])
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_no_write_is_confirmed_without_the_files_beside_the_database(
    database: Database, how: Callable[[Database], None], suffix: str, is_replaced: bool
) -> None:
    """As after `cp backup.db tsuzuki.db; rm tsuzuki.db-wal`: the database keeps its inode."""
    how(database)
    beside = Path(f"{database.path}{suffix}")
    beside.rename(beside.with_name("moved"))
    if is_replaced:
        beside.touch()
    with pytest.raises(DatabaseReplaced, match=f"{suffix} was"):
        how(database)
    assert database.replaced is not None


@only_on_sqlite
def test_the_files_beside_a_database_behind_a_link_are_checked_too(
    database: Database, tmp_path: Path
) -> None:
    assert database.path is not None
    link = tmp_path / "link.db"
    link.symlink_to(database.path)
    behind = open_database(f"sqlite:///{link}", clock=database.clock)
    write(behind)
    database.write_ahead_log.unlink()
    with pytest.raises(DatabaseReplaced, match="-wal was"):
        write(behind)
    behind.close()


@only_on_sqlite
def test_a_log_that_sqlite_deletes_with_the_last_connection_is_no_loss(database: Database) -> None:
    write(database)
    pool_of(database.engine).close_idle()
    assert not database.write_ahead_log.exists()
    write(database)


@only_on_sqlite
def test_a_file_that_shows_as_damaged_because_it_was_replaced_is_told_as_replaced(
    database: Database,
) -> None:
    write(database)
    assert database.path is not None
    database.path.write_bytes(b"x" * database.path.stat().st_size)
    database.write_ahead_log.unlink()
    with pytest.raises(DatabaseReplaced), database.write() as connection:
        connection.execute(text("SELECT count(*) FROM tsuzuki_job_runs"))


@only_on_sqlite
def test_a_file_that_is_replaced_during_a_transaction_fails_it(database: Database) -> None:
    assert database.path is not None
    moved = database.path.with_name("moved.db")

    def move_meanwhile() -> None:
        with database.write() as connection:
            connection.execute(text("CREATE TABLE written (n INTEGER)"))
            assert database.path is not None
            database.path.rename(moved)

    with pytest.raises(DatabaseReplaced):
        move_meanwhile()
    with closing(sqlite3.connect(moved)) as raw:
        tables = raw.execute("SELECT name FROM sqlite_master").fetchall()
    assert ("written",) not in tables
    assert not database.path.exists()


@only_on_sqlite
def test_nothing_is_read_from_a_file_that_is_gone(database: Database) -> None:
    """Whoever waits for a run would see it as it was, for ever."""
    assert database.path is not None
    with database.read() as connection:
        connection.execute(text("SELECT 1"))
    database.path.rename(database.path.with_name("moved.db"))
    with pytest.raises(DatabaseReplaced), database.read():
        pass


@only_on_sqlite
def test_no_new_file_is_made_in_place_of_one_that_is_gone(database: Database) -> None:
    assert database.path is not None
    write(database)
    database.path.rename(database.path.with_name("moved.db"))
    with pytest.raises(DatabaseReplaced), database.read(), database.read():
        pass
    assert not database.path.exists()


def test_a_path_that_cannot_be_looked_at_is_not_checked(tmp_path: Path) -> None:
    identity = FileIdentity(str(tmp_path / "missing"))
    identity.note()
    identity.check()
