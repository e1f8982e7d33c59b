"""A restore that is killed leaves a usable database: the old one with all of its commits, or the backup."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tsuzuki.store.restore import restore

CRASHED_WRITER = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("CREATE TABLE tsuzuki_job_runs (id INTEGER)")
connection.execute("PRAGMA wal_checkpoint")
connection.execute("INSERT INTO tsuzuki_job_runs VALUES (1), (2)")
os._exit(0)
"""
"""Leaves its last commit in the write-ahead log."""

KILLED_RESTORE = """
import os, sys
from pathlib import Path
from tsuzuki.store import restore

steps_left = int(sys.argv[1])
if sys.argv[2] == "full disk":
    restore._merge_log = lambda target: None

def kill_at_step(event, arguments):
    global steps_left
    if event in ("os.rename", "os.link", "os.remove", "sqlite3.connect", "fcntl.lockf"):
        steps_left -= 1
        if steps_left == 0:
            os._exit(137)

backup, target, kept = map(Path, sys.argv[3:])
sys.addaudithook(kill_at_step)
restore.restore(backup, target, kept=kept)
"""
"""Ends as `kill -9` would, before its n-th step that changes or opens a file."""

OLD, NEW = {1, 2}, {7}
KILLED = 137
STEPS_MAX = 30


@dataclass(frozen=True, kw_only=True)
class Files:
    backup: Path
    target: Path
    kept: Path

    @property
    def log(self) -> Path:
        return Path(f"{self.target}-wal")

    def restore_until(self, step: int, *, disk: str = "") -> bool:
        """Whether it was killed before it was done. On a `full disk` no log can be merged."""
        files = (self.backup, self.target, self.kept)
        done = subprocess.run(
            [sys.executable, "-c", KILLED_RESTORE, str(step), disk, *files], check=False
        )
        assert done.returncode in (0, KILLED)
        return done.returncode == KILLED


def new_files(folder: Path) -> Files:
    """An old database whose last commit is in its log, and a backup of another."""
    folder.mkdir()
    files = Files(backup=folder / "backup.db", target=folder / "t.db", kept=folder / "kept.db")
    subprocess.run([sys.executable, "-c", CRASHED_WRITER, files.target], check=True)
    assert files.log.stat().st_size
    with closing(sqlite3.connect(files.backup)) as connection, connection:
        connection.execute("CREATE TABLE tsuzuki_job_runs (id INTEGER)")
        connection.execute("INSERT INTO tsuzuki_job_runs VALUES (7)")
    return files


def restored_until_each_step(folder: Path) -> Iterator[Files]:
    """The files after a restore that was killed before its first step, its second, and so on."""
    for step in range(1, STEPS_MAX):
        files = new_files(folder / str(step))
        is_killed = files.restore_until(step)
        yield files
        if not is_killed:
            assert step > 5
            return
    pytest.fail("the restore never ends")


def content(database: Path) -> set[int]:
    """As a process reads it that is started next."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {number for (number,) in connection.execute("SELECT id FROM tsuzuki_job_runs")}


def test_a_restore_that_is_killed_leaves_the_old_database_or_the_backup_whole(
    tmp_path: Path,
) -> None:
    for files in restored_until_each_step(tmp_path):
        found = content(files.target)
        assert found in (OLD, NEW)
        if found == NEW:
            assert content(files.kept) == OLD


def test_a_restore_that_was_killed_is_repeated(tmp_path: Path) -> None:
    for files in restored_until_each_step(tmp_path):
        again = files.kept.with_name("kept-again.db")
        restore(files.backup, files.target, kept=again)
        assert content(files.target) == NEW
        assert OLD in [content(path) for path in (files.kept, again) if path.exists()]


def test_a_log_that_cannot_be_merged_is_kept_with_its_database_wherever_the_restore_is_killed(
    tmp_path: Path,
) -> None:
    for step in range(1, STEPS_MAX):
        files = new_files(tmp_path / str(step))
        old = files.target.read_bytes(), files.log.read_bytes()
        is_killed = files.restore_until(step, disk="full disk")
        pairs = [
            (path.read_bytes(), Path(f"{path}-wal").read_bytes())
            for path in (files.target, files.kept)
            if path.exists() and Path(f"{path}-wal").exists()
        ]
        assert old in pairs
        if not is_killed:
            assert not files.log.exists()
            assert content(files.target) == NEW
            assert content(files.kept) == OLD
            return
    pytest.fail("the restore never ends")


def test_a_log_without_its_database_is_not_taken_for_one_of_the_backup(tmp_path: Path) -> None:
    files = new_files(tmp_path / "files")
    log = files.log.read_bytes()
    files.target.unlink()
    restore(files.backup, files.target, kept=files.kept)
    assert content(files.target) == NEW
    assert Path(f"{files.kept}-wal").read_bytes() == log
