"""Frames: how a child and the processes that it forks write into the one pipe to their worker.

What Python code writes, and what the child says itself, is framed; what C libraries and other programs write to
standard output and standard error stands between the frames. One pipe keeps all of it in order. A frame begins with a
mark that is random for each child, and is short enough for the kernel to write it as a whole.
"""

import os
import select
import struct
import threading
from collections.abc import Iterator
from typing import NamedTuple

from tsuzuki.store.sql.forks import on_fork

MARK_BYTES = 8

STDOUT, STDERR = b"o", b"e"
"""Parts of what `sys.stdout` and `sys.stderr` were given."""

LOG_LINE, STDERR_LINE = b"l", b"E"
"""One entry of the run's log."""

MESSAGE = b"m"
"""From the child to its worker, as JSON."""

RAW = b""
"""What is not framed."""

_HEADER = struct.Struct(f"={MARK_BYTES}sIc?H")
_PAYLOAD_BYTES_MAX = 4096 - _HEADER.size
"""The kernel writes up to 4 KiB into a pipe as a whole."""


class Frame(NamedTuple):
    kind: bytes
    pid: int
    payload: bytes


class FrameWriter:
    """Thread-safe. `write` blocks while the worker has no space for more."""

    def __init__(self, descriptor: int, mark: bytes) -> None:
        self._descriptor = descriptor
        self._mark = mark
        self._lock = threading.Lock()
        on_fork(self)

    def write(self, kind: bytes, payload: bytes) -> None:
        pid = os.getpid()
        with self._lock:
            while True:
                part, payload = payload[:_PAYLOAD_BYTES_MAX], payload[_PAYLOAD_BYTES_MAX:]
                header = _HEADER.pack(self._mark, pid, kind, bool(payload), len(part))
                self._write_whole(header + part)
                if not payload:
                    return

    def _write_whole(self, frame: bytes) -> None:
        while True:
            try:
                os.write(self._descriptor, frame)
            except (
                BlockingIOError
            ):  # a program that has the pipe too, such as node, does not want to wait for it
                select.select([], [self._descriptor], [])
            else:
                return

    def forget_parent(self) -> None:
        """In a forked process: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


class FrameReader:
    """Takes the output of a child apart."""

    def __init__(self, mark: bytes) -> None:
        self._mark = mark
        self._rest = b""
        self._begun: dict[tuple[int, bytes], bytes] = {}
        """The frames that are to be continued."""

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        self._rest += chunk
        while self._rest:
            at = self._rest.find(self._mark)
            raw_end = len(self._rest) - self._mark_begun() if at < 0 else at
            if raw_end:
                raw, self._rest = self._rest[:raw_end], self._rest[raw_end:]
                yield Frame(RAW, 0, raw)
            if at < 0 or len(self._rest) < _HEADER.size:
                return
            _, pid, kind, is_continued, length = _HEADER.unpack_from(self._rest)
            if len(self._rest) < _HEADER.size + length:
                return
            payload = self._rest[_HEADER.size : _HEADER.size + length]
            self._rest = self._rest[_HEADER.size + length :]
            whole = self._begun.pop((pid, kind), b"") + payload
            if is_continued:
                self._begun[pid, kind] = whole
            else:
                yield Frame(kind, pid, whole)

    def _mark_begun(self) -> int:
        """How many bytes at the end may be the beginning of a mark."""
        sizes = range(min(MARK_BYTES - 1, len(self._rest)), 0, -1)
        return next((size for size in sizes if self._rest.endswith(self._mark[:size])), 0)
