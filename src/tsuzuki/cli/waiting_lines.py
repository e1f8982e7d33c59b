"""A line every few seconds while a command waits for an outside service, so that it does not look dead."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import say
from tsuzuki.cli.progress_interval import LINE_SECONDS
from tsuzuki.model.clock import Clock, SystemClock


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
            say(invocation, f"Waiting for {what}, {clock.monotonic() - since:.0f} s. Stop with ^C.")

    teller = threading.Thread(target=tell, name="tsuzuki-waiting", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
