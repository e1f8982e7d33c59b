"""File watch (Linux inotify): wakes processes that share an SQLite file. One touches the file after its
commit, the kernel wakes the others. It also tells when a process that kept a file open has ended.

A touch, not the write itself: the file is written before the commit is visible, and touched after it.

Optional: where there is no inotify, or no watch left, `watch` answers None and the caller polls instead.
"""

import ctypes
import os
import select
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

TOUCHED = 0x00000004
"""IN_ATTRIB."""

CLOSED_AFTER_WRITING = 0x00000008
"""IN_CLOSE_WRITE: the last descriptor of a file that was open for writing, in whatever process, is closed."""

_CLOSE_ON_EXEC = os.O_CLOEXEC
_NON_BLOCKING = os.O_NONBLOCK
_READ_BYTES = 64 * 1024
_EVENT = struct.Struct("iIII")
"""Watch, event, cookie and the length of the name that follows."""


class FileWatch:
    """Created by `watch`; used by one thread."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait for an event, at most that long; true if there was one since the last call."""
        return bool(self._poll.poll(seconds * 1000) and self._read())

    def names(self) -> frozenset[str]:
        """The files in watched folders that had an event since the last call."""
        events, names = self._read(), set()
        while events:
            _, _, _, length = _EVENT.unpack_from(events)
            end = _EVENT.size + length
            names.add(os.fsdecode(events[_EVENT.size : end].rstrip(b"\0")))
            events = events[end:]
        return frozenset(names - {""})

    def _read(self) -> bytes:
        try:
            return os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def touch(path: Path) -> None:
    """Wake the processes that watch the file. If it does not exist or may not be touched, they poll: no error."""
    with suppress(OSError):
        os.utime(path)


def watch(paths: Iterable[Path], events: int = TOUCHED) -> FileWatch | None:
    """A watch over these files, or the files in these folders, as far as they exist; None if that is not possible."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(_CLOSE_ON_EXEC | _NON_BLOCKING)
    except (OSError, AttributeError):
        return None
    if descriptor < 0:
        return None
    added = [libc.inotify_add_watch(descriptor, os.fsencode(path), events) >= 0 for path in paths]
    if not any(added):
        os.close(descriptor)
        return None
    return FileWatch(descriptor)
