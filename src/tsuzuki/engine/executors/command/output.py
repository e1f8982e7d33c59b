"""The outputs of a command: read while there is space for more lines, and passed on in whole lines.

Memory is bounded however long its lines are. Without space the pipes are not read, and the command waits.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial

from tsuzuki.engine.output_lines import pieces_of, text_of
from tsuzuki.model.run_limits import LOG_LINE_BYTES_MAX

TAIL_BYTES_MAX = 8 * 1024
"""Enough for the exception of a long traceback, which names the cause."""

READ_BYTES_MAX = 64 * 1024
READS_MAX = 64
"""A pipe holds at most a megabyte; a process that is not ours may go on writing into it."""

UNWATCHED_SECONDS = 0.02
"""The outputs of a command that ends within this time are not watched, but read when it has ended: that is
cheaper, and most commands are short."""

SPACE_POLL_SECONDS = 0.02
"""How often to look whether there is space for more lines."""


class OutputStream:
    """One output of a process. `deliver` gets whole lines, without the newline of the last one; they are split
    only where they are needed, so that a flood costs next to nothing. The tail of the output is kept too.

    `mask` takes secrets out of whole lines.
    """

    def __init__(
        self, *, deliver: Callable[[bytes], None], mask: Callable[[bytes], bytes] = bytes
    ) -> None:
        self._deliver = deliver
        self._mask = mask
        self._rest = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk[-TAIL_BYTES_MAX:])[-TAIL_BYTES_MAX:]
        lines, newline, self._rest = (self._rest + chunk).rpartition(b"\n")
        if newline:
            self._deliver(self._mask(lines))
        if len(self._rest) > LOG_LINE_BYTES_MAX:
            *overlong, self._rest = pieces_of(self._rest)
            for piece in overlong:
                self._deliver(self._mask(piece))

    def finish(self) -> None:
        """The output has ended: deliver what is left."""
        if self._rest:
            self._deliver(self._mask(self._rest))
        self._rest = b""

    def tail(self) -> str:
        """The last whole lines that were written; or the end of the last one."""
        whole = self._tail
        if len(self._tail) == TAIL_BYTES_MAX:
            whole = self._tail.partition(b"\n")[2] or self._tail
        return text_of(self._mask(whole)).strip()


class CommandOutput:
    """Both outputs of a command, on the event loop. Read only while there is space for their lines."""

    def __init__(
        self,
        *,
        stdout: int,
        stderr: int,
        log: Callable[[str, bytes], None],
        has_space: Callable[[], bool],
        mask: Callable[[bytes], bytes],
    ) -> None:
        """`stdout` and `stderr` are descriptors that do not block; `log` gets the name of the stream too."""
        self._stderr = OutputStream(deliver=partial(log, "stderr"), mask=mask)
        self._open = {
            stdout: OutputStream(deliver=partial(log, "stdout"), mask=mask),
            stderr: self._stderr,
        }
        self._has_space = has_space
        self._timer: asyncio.TimerHandle | None = None
        self._watched: set[int] = set()
        self._on_closed: Callable[[], None] = lambda: None
        self.is_waiting = False
        """Whether it waits for space."""

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def start(self, on_closed: Callable[[], None]) -> None:
        """`on_closed` is called when all are closed, unless they were closed by `read_now` or `close`."""
        self._on_closed = on_closed
        self._watch_after(UNWATCHED_SECONDS)

    def read_now(self) -> None:
        """The command has ended: read what is in the pipes."""
        if self.is_waiting:
            return
        for descriptor in list(self._open):
            for _ in range(READS_MAX):
                if not self._read(descriptor):
                    break
        if self._open and not (self.is_waiting or self._watched):
            self._watch()

    def stderr_tail(self) -> str:
        return self._stderr.tail()

    def close(self) -> None:
        """Close what is still open, unread."""
        self.is_waiting = False
        for descriptor in list(self._open):
            self._close(descriptor)

    def _watch(self) -> None:
        self._cancel_timer()
        if not self._has_space():
            self._wait_for_space()
            return
        self.is_waiting = False
        for descriptor in self._open:
            self._watched.add(descriptor)
            asyncio.get_running_loop().add_reader(descriptor, self._on_readable, descriptor)

    def _watch_after(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._watch)

    def _wait_for_space(self) -> None:
        self.is_waiting = True
        for descriptor in self._open:
            self._unwatch(descriptor)
        self._watch_after(SPACE_POLL_SECONDS)

    def _on_readable(self, descriptor: int) -> None:
        if descriptor in self._watched:  # and not a call that was due before we began to wait
            self._read(descriptor)
            if not self._open:
                self._on_closed()

    def _read(self, descriptor: int) -> bool:
        """Read a part; false if there is no more now."""
        if not self._has_space():
            self._wait_for_space()
            return False
        try:
            chunk = os.read(descriptor, READ_BYTES_MAX)
        except BlockingIOError:
            return False
        if not chunk:
            self._close(descriptor)
            return False
        self._open[descriptor].feed(chunk)
        return True

    def _close(self, descriptor: int) -> None:
        self._unwatch(descriptor)
        os.close(descriptor)
        self._open.pop(descriptor).finish()
        if not self._open:
            self._cancel_timer()

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self._watched:
            self._watched.discard(descriptor)
            asyncio.get_running_loop().remove_reader(descriptor)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
