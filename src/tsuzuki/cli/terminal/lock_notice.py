"""Report on stderr that a command is waiting for the write lock of an SQLite file, and which process holds it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import warn

if TYPE_CHECKING:
    from tsuzuki.services.maintenance import Maintenance

NOTICE_AFTER_SECONDS = 2.0
CHECK_SECONDS = 0.25


@contextmanager
def noticing_lock_waits(invocation: Invocation, maintenance: "Maintenance") -> Iterator[None]:
    """While the block runs, a wait of two seconds is told once. The command goes on waiting, and answers ^C."""
    if maintenance.lock_file is None:
        yield
        return
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(invocation, maintenance, done), daemon=True)
    watch.start()
    from tsuzuki.services.maintenance import answering_signals

    try:
        with answering_signals():
            yield
    finally:
        done.set()
        watch.join()


def _watch(invocation: Invocation, maintenance: "Maintenance", done: threading.Event) -> None:
    while not done.wait(CHECK_SECONDS):
        if maintenance.lock_wait_seconds() >= NOTICE_AFTER_SECONDS:
            holder = maintenance.lock_holder() or "another process"
            warn(invocation, f"{maintenance.lock_file} is locked by {holder}; waiting for it")
            return
