"""The disk under an SQLite file fills up: the error says so, nothing is damaged, and work goes on with space again."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import small_disk
from support.daemons import Daemon, Daemons, started_on
from support.load import Load
from support.small_disk import SmallDisk
from tsuzuki.store.sql.database import Database

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not small_disk.can_be_made(), reason="this system allows no namespaces to mount a disk in"
    ),
]

PIECES = 150


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with SmallDisk(folder, megabytes=8) as disk:
        yield disk


@pytest.fixture
def file(disk: SmallDisk) -> Path:
    return disk.folder / "small.db"


@pytest.fixture
def squeezed(disk: SmallDisk, file: Path, tmp_path: Path) -> Iterator[Daemons]:
    """Processes whose database is on the small disk."""
    with started_on(f"sqlite:///{file}", tmp_path, inside=disk.inside) as daemons:
        yield daemons


def test_a_disk_that_fills_up_under_load_is_a_clear_error_and_work_goes_on_when_there_is_space(
    quick_database: Database, disk: SmallDisk, file: Path, squeezed: Daemons, tmp_path: Path
) -> None:
    home = quick_database.path
    assert home is not None
    load = Load(quick_database, tmp_path, seconds=0.3)
    load.submit_at_once(PIECES)
    quick_database.close()
    shutil.copy(home, disk.seen_from_outside / file.name)
    daemon, _ = squeezed.start_together(["up", "--capacity", "5"], ["worker", "--capacity", "5"])
    load.wait_for_ends(10)
    disk.fill()
    failed = daemon.wait_for("step failed, retrying")
    assert failed["code"] == "database"
    assert failed["error"] == f"the database {file} is out of disk space"
    assert failed["hint"].startswith("Free some disk space")
    flags = ["--database-url", f"sqlite:///{file}", "--output", "json"]
    refused = inside(disk, tmp_path, "-m", "tsuzuki", *flags, "job", "run", Load.JOB)
    assert (refused.returncode, refused.stdout) == (5, "")
    error = json.loads(refused.stderr)["error"]
    assert error["message"] == failed["error"]
    assert error["hint"].startswith("Free some disk space")
    daemon.wait_for("detached: stopping all runs")
    assert integrity(disk, file, tmp_path) == "ok"

    disk.make_room()
    daemon.wait_for("attached again")
    load.wait_for_all()
    assert squeezed.are_all_up()
    squeezed.stop_all()
    assert integrity(disk, file, tmp_path) == "ok"
    shutil.copy(disk.seen_from_outside / file.name, home)
    load.settle()


def test_a_process_that_starts_on_a_full_disk_waits_for_space(
    quick_database: Database, disk: SmallDisk, file: Path, tmp_path: Path
) -> None:
    home = quick_database.path
    assert home is not None
    quick_database.close()
    shutil.copy(home, disk.seen_from_outside / file.name)
    disk.fill()
    daemon = Daemon(f"sqlite:///{file}", tmp_path, "worker", environ={}, inside=disk.inside)
    try:
        waiting = daemon.wait_for("database unreachable, waiting for it")
        assert waiting["error"].startswith(f"the database {file} ")
        disk.make_room()
        daemon.wait_for("started")
        daemon.send(signal.SIGTERM)
        assert daemon.ended() == 0
    finally:
        daemon.process.kill()


def inside(disk: SmallDisk, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*disk.inside, sys.executable, *words],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def integrity(disk: SmallDisk, file: Path, folder: Path) -> str:
    """What SQLite itself finds in the file."""
    check = f"connect({str(file)!r}).execute('PRAGMA integrity_check').fetchone()[0]"
    return inside(disk, folder, "-c", f"from sqlite3 import connect; print({check})").stdout.strip()
