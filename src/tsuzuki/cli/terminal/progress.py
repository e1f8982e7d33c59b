"""Progress lines for output that is not a terminal, and while a command waits for an outside service."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import say
from tsuzuki.model.clock import Clock, SystemClock

LINE_SECONDS = 5.0
LINE_SECONDS_MAX = 60.0
"""Between two lines that say only that it goes on."""


class ProgressInterval:
    """Begins when it is made, and anew whenever it is over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_at = clock.monotonic()

    def is_over(self) -> bool:
        now = self._clock.monotonic()
        if now - self._began_at < LINE_SECONDS:
            return False
        self._began_at = now
        return True


@contextmanager
def waiting_told(
    invocation: Invocation, what: str, *, clock: Clock | None = None, seconds: float = LINE_SECONDS
) -> Iterator[None]:
    """Say what is waited for, and for how long, until the end of the block. A short wait says nothing."""
    clock = clock or SystemClock()
    over = threading.Event()
    since = clock.monotonic()

    def tell() -> None:
        while not clock.wait(over, seconds):
            say(
                invocation,
                f"Waiting for {what} ({clock.monotonic() - since:.0f} s). Press ^C to stop.",
            )

    teller = threading.Thread(target=tell, name="tsuzuki-waiting", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
