"""Edits among real processes: no edit is lost, no file is half written, if a process dies."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.processes import in_processes
from tsuzuki.config import load_configuration
from tsuzuki.config.edit import LOCK_TIMEOUT_SECONDS, ConfigEditor
from tsuzuki.config.yaml.atomic_write import replace_content
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Conflict, Unreachable

FILE = "# Ours.\njobs:\n  hello:\n    command: [echo, hello]  # greets\n"
PROCESSES, EDITS = 3, 5


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text(FILE)
    return path


def add_many(path: str, worker: int) -> None:
    for number in range(EDITS):
        ConfigEditor(Path(path)).add_job(
            f"job-{worker}-{number}", {"command": ["echo", str(number)]}
        )


def names(path: Path) -> set[str]:
    return {job.name for job in load_configuration(environ={}, cwd=path.parent).jobs}


def in_another_process(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run `code`, which finds the file's path in `path`, in a process of its own."""
    prelude = f"from pathlib import Path\npath = Path({str(path)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_processes_that_edit_at_once_lose_no_edit_and_readers_see_whole_files(path: Path) -> None:
    done = threading.Event()
    failures: list[Exception] = []

    def read_on() -> None:
        while not done.is_set():
            try:
                names(path)
            except Exception as failure:  # noqa: BLE001 -- the test reports any failure
                failures.append(failure)

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        in_processes(add_many, [(str(path), worker) for worker in range(PROCESSES)])
    finally:
        done.set()
        reader.join()
    assert failures == []
    expected = {f"job-{worker}-{n}" for worker in range(PROCESSES) for n in range(EDITS)}
    assert names(path) == expected | {"hello"}
    assert path.read_text().startswith(FILE)


def test_a_writer_killed_before_the_rename_leaves_the_old_file_and_no_lock(path: Path) -> None:
    killed = in_another_process(
        """
        import os, signal
        from tsuzuki.config.edit import ConfigEditor
        Path.replace = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)
        ConfigEditor(path).set_enabled("hello", False)
        """,
        path,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert path.read_text() == FILE
    leftover = path.with_name(".tsuzuki.yaml.tmp")
    assert leftover.exists(), "it died at the moment this test is about"
    ConfigEditor(path).set_enabled("hello", False)
    assert path.read_text() == FILE + "    enabled: false\n"
    assert not leftover.exists()


def test_a_lock_that_is_held_too_long_is_a_conflict(path: Path) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    with path.with_name(".tsuzuki.yaml.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match="being edited by another process"):
            ConfigEditor(path, clock=clock).remove_job("hello")
    assert clock.monotonic() == pytest.approx(LOCK_TIMEOUT_SECONDS, abs=0.1)
    assert path.read_text() == FILE


def test_what_an_editor_saved_meanwhile_is_not_overwritten(path: Path) -> None:
    with pytest.raises(Conflict, match="changed by another program"):
        replace_content(path, b"ours\n", expected=b"what we had read\n")
    assert path.read_text() == FILE
    assert not path.with_name(".tsuzuki.yaml.tmp").exists()


def test_a_disk_that_takes_no_more_leaves_the_old_file(path: Path) -> None:
    failed = in_another_process(
        """
        import resource
        from tsuzuki.config.edit import ConfigEditor
        from tsuzuki.model.errors import Unreachable
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        try:
            ConfigEditor(path).set_enabled("hello", False)
        except Unreachable as error:
            print(error.message)
        """,
        path,
    )
    assert "cannot write" in failed.stdout, failed.stderr
    assert path.read_text() == FILE
    assert not path.with_name(".tsuzuki.yaml.tmp").exists()


def test_a_full_disk_is_told_with_the_remedy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tsuzuki.config.yaml.atomic_write.os.fsync", full)
    with pytest.raises(Unreachable, match="No space left on device") as caught:
        ConfigEditor(path).set_enabled("hello", False)
    assert caught.value.hint is not None
    assert "Free some disk space" in caught.value.hint
    assert path.read_text() == FILE


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter; the test's own are for its user only."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_folder_that_may_not_be_written_is_told(open_folder: Path) -> None:
    path = open_folder / "tsuzuki.yaml"
    path.write_text(FILE)
    open_folder.chmod(0o555)
    refused = in_another_process(
        """
        import os
        from tsuzuki.config.edit import ConfigEditor
        from tsuzuki.model.errors import Unreachable
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            ConfigEditor(path).set_enabled("hello", False)
        except Unreachable as error:
            print(error.message, error.hint, error.place)
        """,
        path,
    )
    assert f"cannot write {path}: Permission denied" in refused.stdout, refused.stderr
    assert path.read_text() == FILE
    assert [entry.name for entry in open_folder.iterdir()] == ["tsuzuki.yaml"]
