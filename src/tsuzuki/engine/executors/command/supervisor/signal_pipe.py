"""Self-pipe for signals: wait for descriptors and for the end of a child at the same time."""

import math
import os
import select
import signal
import socket
from contextlib import suppress
from typing import Any


class SignalPipe:
    """Readable when a child has ended. Also keeps signals meant for the worker from ending us: by empty
    handlers, because a signal that we ignore would be ignored by the commands that we start too."""

    def __init__(self) -> None:
        self.descriptor, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def clear(self) -> None:
        """Empty the pipe. Call it before checking for ended children, or an end could be missed."""
        with suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def wait(self, seconds: float) -> None:
        """Until a signal comes, or `seconds` have passed."""
        select.select([self.descriptor], [], [], seconds)
        self.clear()

    def wait_with(
        self, *sources: int | socket.socket | None, seconds: float = math.inf
    ) -> list[Any]:
        """Until a signal comes, one of the sources is readable, or `seconds` have passed; returns the readable
        ones."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        by_descriptor = {_descriptor(one): one for one in sources if one is not None}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        # Rounded up: a wait that ends too early would be repeated at once.
        timeout = None if seconds == math.inf else math.ceil(max(seconds, 0.0) * 1000)
        ready = [by_descriptor[fd] for fd, _ in poll.poll(timeout) if fd in by_descriptor]
        self.clear()
        return ready


def _descriptor(source: int | socket.socket) -> int:
    return source if isinstance(source, int) else source.fileno()
