"""A bell between processes that share a file: one touches it, the kernel tells the others (Linux inotify).

A touch, not a write: an SQLite file is written before what was written can be seen, and touched after it.

Only a help. Where the kernel has no such thing, or no watch to spare, `watch` answers None and whoever
waits looks from time to time instead.
"""

import ctypes
import os
import select
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_IN_ATTRIB = 0x00000004
_CLOSE_ON_EXEC = os.O_CLOEXEC
_NON_BLOCKING = os.O_NONBLOCK
_READ_BYTES = 64 * 1024


class FileWatch:
    """Made by `watch`; used by one thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait for a touch, at most that long; true if there was one since the last call."""
        if not self._poll.poll(seconds * 1000):
            return False
        try:
            # What happened does not matter, only that something did.
            os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def touch(path: Path) -> None:
    """Tell whoever watches the file. One that is not there, or not ours to touch, is watched by nobody
    who could not do without."""
    with suppress(OSError):
        os.utime(path)


def watch(paths: Iterable[Path]) -> FileWatch | None:
    """A watch over these files, as far as they exist; None where that cannot be had."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_CLOSE_ON_EXEC | _NON_BLOCKING)
    except (OSError, AttributeError):
        return None
    if descriptor < 0:
        return None
    added = [
        libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_ATTRIB) >= 0 for path in paths
    ]
    if not any(added):
        os.close(descriptor)
        return None
    return FileWatch(descriptor)
