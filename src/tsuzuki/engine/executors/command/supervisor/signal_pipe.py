"""Waiting for several things at once, the end of a child among them."""

import os
import select
import signal
import socket
from contextlib import suppress
from typing import Any


class SignalPipe:
    """Readable when a child has ended. Also keeps signals meant for the worker from ending us: by
    handlers, because what is ignored would stay ignored in the commands that we start."""

    def __init__(self) -> None:
        self.descriptor, ringing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(ringing, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)

    def clear(self) -> None:
        """To be called before looking for what has ended, or an end could be missed."""
        with suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def wait(self, seconds: float) -> None:
        """Until it rings, or `seconds` have passed."""
        select.select([self.descriptor], [], [], seconds)
        self.clear()

    def wait_with(self, *sources: int | socket.socket | None) -> list[Any]:
        """Until it rings or one of the sources has something to say; those that have."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        by_number = {_number(source): source for source in sources if source is not None}
        for number in by_number:
            poll.register(number, select.POLLIN)
        ready = [by_number[number] for number, _ in poll.poll() if number in by_number]
        self.clear()
        return ready


def _number(source: int | socket.socket) -> int:
    return source if isinstance(source, int) else source.fileno()
