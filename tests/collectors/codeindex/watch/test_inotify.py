"""Notifications: in the queue before the change returns, and never lost without a word."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.watch import inotify as inotify_module
from tsuzuki.collectors.codeindex.watch.inotify import Inotify, is_local

MOUNT = """
import pathlib, subprocess, sys, threading
from tsuzuki.collectors.codeindex.watch.notifier import Notifier
root = pathlib.Path(sys.argv[1])
told = []
notifier = Notifier(root, stopping=threading.Event(), is_own=lambda _: False)
notifier.on_changed = told.append
subprocess.run(["mount", "-t", "tmpfs", "none", sys.argv[2]], check=True)
notifier.drain()
print(any(one.whole for one in told))
(root / "in a folder" / "file.py").write_text("")
told.clear()
notifier.drain()
print(sorted(path for one in told for path in one.paths))
"""


@pytest.fixture
def inotify() -> Iterator[Inotify]:
    made = Inotify()
    yield made
    made.close()


def test_an_event_is_there_when_the_change_has_returned(inotify: Inotify, tmp_path: Path) -> None:
    watch = inotify.add(str(tmp_path))
    assert inotify.read() == []
    file = tmp_path / "名前.py"
    for number in range(100):
        file.write_text(str(number))
        assert {(one.watch, one.name) for one in inotify.read()} == {(watch, "名前.py")}


def test_a_name_that_is_not_utf_8_is_told_as_the_file_system_has_it(
    inotify: Inotify, tmp_path: Path
) -> None:
    inotify.add(str(tmp_path))
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")).touch()
    assert {os.fsencode(one.name) for one in inotify.read()} == {b"\xff.py"}


def test_links_and_files_are_not_watched(inotify: Inotify, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError):
            inotify.add(str(tmp_path / name))


def test_a_full_queue_is_told_of(inotify: Inotify, tmp_path: Path) -> None:
    inotify.add(str(tmp_path))
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.touch()
    queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(queued + 1):
        os.utime(files[number % 2])
    assert any(one.mask & inotify_module.OVERFLOW for one in inotify.read())


def test_local_file_systems_are_told_from_others(tmp_path: Path) -> None:
    assert is_local(str(tmp_path))
    assert not is_local("/proc")
    assert not is_local(str(tmp_path / "missing"))


def in_namespace(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as root of a namespace with mounts of its own."""
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", *command],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(
    not Path("/usr/bin/unshare").exists() or in_namespace("true").returncode != 0,
    reason="needs user namespaces",
)
def test_what_is_mounted_below_a_watched_tree_is_told_of_and_watched(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tree root" / "in a folder"
    folder.mkdir(parents=True)
    ended = in_namespace(sys.executable, "-c", MOUNT, str(folder.parent), str(folder))
    assert ended.stdout.splitlines() == ["True", "['in a folder/file.py']"], ended.stderr
