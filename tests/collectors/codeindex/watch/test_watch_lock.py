"""The lock of a watched tree, and what a watcher that waits for it tells of its holder."""

import errno
import fcntl
import os
from pathlib import Path
from typing import NoReturn

import pytest

from collectors.codeindex.watch.watched import Watched
from tsuzuki.collectors.codeindex.index_file import index_path
from tsuzuki.collectors.codeindex.service import watcher as watcher_module
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.service.watcher import WatchState
from tsuzuki.collectors.codeindex.watch.watch_lock import WatchLock, lock_path, watching_pid


def test_a_process_that_has_just_got_the_lock_is_named_too(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock_path(index_path(tree, builds.folder))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def look_before_it_is_written(index_file: Path) -> int | None:
            found = watching_pid(index_file)
            held.write("77\n" if not found else "")
            held.flush()
            return found

        monkeypatch.setattr(watcher_module, "watching_pid", look_before_it_is_written)
        with Watched(tree, builds) as waiting:
            assert waiting.state(WatchState.WAITING).note == "process 77 watches it"


def test_a_process_that_is_known_late_is_named_then_and_its_successor_too(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "PID_LOOKS_MAX", 2)
    monkeypatch.setattr(watcher_module, "LOOK_SECONDS", 0.01)
    path = lock_path(index_path(tree, builds.folder))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with Watched(tree, builds) as waiting:
            assert waiting.state(WatchState.WAITING).note == "another process watches it"
            for pid in (77, 78):
                os.pwrite(held.fileno(), b"%d\n" % pid, 0)
                assert waiting.state(WatchState.WAITING).note == f"process {pid} watches it"


def test_a_lock_that_is_given_back_while_its_holder_is_looked_for_is_not_waited_for(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = WatchLock.take(index_path(tree, builds.folder))
    assert held is not None

    def look_too_late(index_file: Path) -> int | None:
        held.release()
        return watching_pid(index_file)

    monkeypatch.setattr(watcher_module, "watching_pid", look_too_late)
    with Watched(tree, builds).resting() as watched:
        pass
    assert all(told.state is not WatchState.WAITING for told in watched.events)


def test_a_lock_whose_holder_cannot_be_written_is_given_back(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_written: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "the disk is full")

    index_file = index_path(tree, builds.folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", fail)
        with pytest.raises(OSError, match="full"):
            WatchLock.take(index_file)
    lock = WatchLock.take(index_file)
    assert lock is not None
    lock.release()
