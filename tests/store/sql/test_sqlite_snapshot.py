"""A file in a folder where nothing can be written is read all the same, and cannot be changed."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support.databases import SqliteFolder, opened
from support.factories import add_job, spec
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import Unreachable
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Database, open_database

UNPRIVILEGED = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not under pytest's folder, which other users may not enter."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        Path(name).chmod(0o700)


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Nothing in it can be written; not by root either."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(UNPRIVILEGED)
    try:
        yield
    finally:
        os.seteuid(user)


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [job.spec.name for job in jobs.find(connection)]


def read_and_try_to_write(file: Path) -> list[str]:
    with (
        without_rights(file.parent),
        closing(open_database(f"sqlite:///{file}", clock=SystemClock())) as database,
    ):
        found = names(database)
        with database.read(), database.read():  # a second connection
            pass
        with pytest.raises(Unreachable, match="is read-only"):
            add_job(database, spec("new"))
    return found


@pytest.fixture
def file(sqlite_folder: SqliteFolder, folder: Path) -> Path:
    return Path(shutil.copyfile(sqlite_folder.template(), folder / "our own.db"))


def test_a_file_that_is_not_in_use_is_read(file: Path) -> None:
    with opened(f"sqlite:///{file}") as database:
        add_job(database, spec("a"))
    assert {one.name for one in file.parent.iterdir()} == {file.name}
    assert read_and_try_to_write(file) == ["a"]


def test_a_file_that_another_process_writes_is_read_as_it_is_now(file: Path) -> None:
    with opened(f"sqlite:///{file}") as database:
        add_job(database, spec("a"))
        assert read_and_try_to_write(file) == ["a"]


def left_by_a_crash(file: Path, folder: Path) -> Path:
    """A folder with the file and a log that has the job in it."""
    left = folder / "left by a crash"
    left.mkdir()
    with opened(f"sqlite:///{file}") as database:
        add_job(database, spec("a"))
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{file}{suffix}", left / f"{file.name}{suffix}")
    folder.chmod(0o755)
    return left


def test_a_file_with_a_log_beside_it_is_read_with_what_is_in_the_log(
    file: Path, folder: Path
) -> None:
    left = left_by_a_crash(file, folder)
    assert read_and_try_to_write(left / file.name) == ["a"]
    left.chmod(0o700)


def test_half_a_copy_is_not_read(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_by_a_crash(file, folder)
    copyfile = shutil.copyfile

    def full_disk(source: Path, copy: Path) -> object:
        if source.name.endswith("-wal"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return copyfile(source, copy)

    with (
        without_rights(left),
        closing(open_database(f"sqlite:///{left / file.name}", clock=SystemClock())) as reader,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(shutil, "copyfile", full_disk)
            with pytest.raises(OSError, match="No space left"):
                names(reader)
        assert names(reader) == ["a"]
    left.chmod(0o700)
