"""An SQLite file that is moved away or replaced beneath running processes: they stop, and confirm nothing that is in no
file."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from processes.test_dying import add_command
from support.daemons import TIMEOUT_SECONDS, Daemons
from support.dialects import only_on_sqlite
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.model.errors import DatabaseReplaced
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = [pytest.mark.slow, only_on_sqlite]

EXIT_UNREACHABLE = 5
SUFFIXES = ("", "-wal", "-shm")


def move_away(path: Path, moved: Path) -> None:
    for suffix in SUFFIXES:
        os.rename(f"{path}{suffix}", f"{moved}{suffix}")  # noqa: PTH104 -- the names have a suffix


def run_ids(path: Path) -> set[int]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM tsuzuki_job_runs")}


@pytest.mark.parametrize("is_replaced", [False, True], ids=["moved away", "replaced by a backup"])
def test_processes_stop_and_confirm_nothing_that_is_in_no_file(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path, is_replaced: bool
) -> None:
    path = quick_database.path
    assert path is not None
    add_command(quick_database, "brief", "true")
    daemon = daemons.start("up")
    confirmed: list[int] = []

    def submit_until_refused() -> DatabaseReplaced:
        while True:
            try:
                confirmed.append(runs.submit(Request(job="brief")).run_id)
            except DatabaseReplaced as problem:
                return problem

    submitting = in_background(submit_until_refused)
    wait_until(lambda: len(confirmed) > 20, "some runs are confirmed")
    moved, backup = tmp_path / "moved.db", tmp_path / "backup.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as copy:
        source.backup(copy)
    move_away(path, moved)
    if is_replaced:
        shutil.copy(backup, path)
    assert submitting.result(TIMEOUT_SECONDS).code == "database_replaced"
    assert set(confirmed) <= run_ids(moved)
    assert daemon.process.wait(TIMEOUT_SECONDS) == EXIT_UNREACHABLE
    assert "database_replaced" in "".join(daemon.other_lines) + str(daemon.events)
    assert path.exists() is is_replaced


def test_processes_stop_if_a_backup_is_copied_over_the_file_and_its_log_is_deleted(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    """The database keeps its inode, and what is committed from then on would be in a log without a name."""
    path = quick_database.path
    assert path is not None
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as copy:
        source.backup(copy)
    add_command(quick_database, "brief", "true")
    daemon = daemons.start("up")
    runs.wait(runs.submit(Request(job="brief")).run_id, timeout_seconds=TIMEOUT_SECONDS)
    shutil.copyfile(backup, path)
    for suffix in SUFFIXES[1:]:
        Path(f"{path}{suffix}").unlink()
    with pytest.raises(DatabaseReplaced):
        runs.submit(Request(job="brief"))
    assert daemon.process.wait(TIMEOUT_SECONDS) == EXIT_UNREACHABLE
    assert "database_replaced" in "".join(daemon.other_lines) + str(daemon.events)
