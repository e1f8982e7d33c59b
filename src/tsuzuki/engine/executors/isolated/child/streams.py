"""The output of a child: `sys.stdout`, `sys.stderr`, `logging` and warnings become the run's log.

What other code writes to descriptors 1 and 2 goes into the same pipe, past these objects.
"""

import ctypes
import io
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from tsuzuki.engine.executors.isolated.frames import LOG_LINE, STDERR, STDOUT, FrameWriter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_libc = ctypes.CDLL(None)
_LINE_BUFFERED = 1
"""`_IOLBF` of C."""


class _FramedStream(io.RawIOBase):
    """What is written becomes frames; as a descriptor it is the standard one."""

    def __init__(self, writer: FrameWriter, kind: bytes, descriptor: int) -> None:
        self._writer = writer
        self._kind = kind
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, content: "Buffer") -> int:
        written = bytes(memoryview(content))
        self._writer.write(self._kind, written)
        return len(written)


class _LogLines(logging.Handler):
    def __init__(self, writer: FrameWriter) -> None:
        super().__init__()
        self._writer = writer
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 -- whatever the arguments of a handler's record raise
            self.handleError(record)
        else:
            self._writer.write(LOG_LINE, line.encode("utf-8", "surrogatepass"))


class Streams:
    """`restore` puts everything back that a function may have replaced."""

    def __init__(self, writer: FrameWriter, pipe: int) -> None:
        self._pipe = pipe
        self._stdout = _text(_FramedStream(writer, STDOUT, 1), errors="surrogateescape")
        self._stderr = _text(_FramedStream(writer, STDERR, 2), errors="backslashreplace")
        logging.getLogger().addHandler(_LogLines(writer))
        logging.getLogger().setLevel(logging.INFO)
        logging.captureWarnings(True)
        _buffer_lines_of_c()
        self.restore()

    def restore(self) -> None:
        sys.stdout, sys.stderr = self._stdout, self._stderr
        for descriptor in (1, 2):
            os.dup2(self._pipe, descriptor)
        os.set_blocking(self._pipe, True)

    def flush(self) -> None:
        for flush in (sys.stdout.flush, sys.stderr.flush, self._stdout.flush, self._stderr.flush):
            _attempt(flush)
        _libc.fflush(None)


def _buffer_lines_of_c() -> None:
    """Into a pipe, C code would write whole blocks: late, and in the next run's log."""
    with suppress(ValueError):  # a C library without this name
        _libc.setvbuf(ctypes.c_void_p.in_dll(_libc, "stdout"), None, _LINE_BUFFERED, 0)


def _text(raw: io.RawIOBase, *, errors: str) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=True
    )


def _attempt(flush: Callable[[], None]) -> None:
    try:
        flush()
    except Exception:  # noqa: BLE001 -- a stream of the function's own
        return
