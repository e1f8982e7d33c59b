"""A time limit for reads: one that takes longer is cancelled, and the caller is told to ask for less.

A caller sets the limit for what it calls (`limited_reads`). One thread cancels what is past its deadline; a read
that ends in time pays for nothing but its place in a set.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ReadTimedOut

REPEAT_SECONDS = 0.1
"""A cancel that comes between two statements stops neither, so it is repeated."""

ASK_FOR_LESS = "Narrow the selection to a job, a state or a shorter time."


@dataclass(frozen=True, kw_only=True)
class _Limit:
    seconds: float
    hint: str


_LIMIT: ContextVar[_Limit | None] = ContextVar("read_limit", default=None)


@contextmanager
def limited_reads(seconds: float, *, hint: str = ASK_FOR_LESS) -> Iterator[None]:
    """Reads that are made inside the block, also by threads that it hands work to, take no longer than this.
    The innermost limit holds."""
    token = _LIMIT.set(_Limit(seconds=seconds, hint=hint))
    try:
        yield
    finally:
        _LIMIT.reset(token)


@dataclass(eq=False, kw_only=True)
class _Read:
    raw: Any
    cancel_at: float
    is_cancelled: bool = False


class ReadWatch:
    """Cancels the reads of one database."""

    def __init__(self, *, clock: Clock, cancel: Callable[[Any], None]) -> None:
        """`cancel` ends the statement that a driver's connection is executing, from another thread."""
        self._clock = clock
        self._cancel = cancel
        self._changed = threading.Condition()
        self._reads: set[_Read] = set()
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, connection: Connection) -> Iterator[None]:
        """Keep the limit that is set for this thread. Raises `ReadTimedOut`."""
        limit = _LIMIT.get()
        if limit is None:
            yield
            return
        raw = connection.connection.driver_connection
        read = _Read(raw=raw, cancel_at=self._clock.monotonic() + limit.seconds)
        self._add(read)
        try:
            yield
        except DBAPIError as problem:
            if self._remove(read):
                raise _timed_out(limit) from problem
            raise
        finally:
            if self._remove(read):
                # A cancel may still be on its way to the server: the next statement must not meet it.
                connection.detach()

    def _add(self, read: _Read) -> None:
        with self._changed:
            self._reads.add(read)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="read-limit", daemon=True)
                self._thread.start()

    def _remove(self, read: _Read) -> bool:
        """Whether it was cancelled."""
        with self._changed:
            self._reads.discard(read)
        return read.is_cancelled

    def _run(self) -> None:
        while self._tick():
            pass

    def _tick(self) -> bool:
        """Cancel what is late. The thread ends when nothing is read."""
        with self._changed:
            self._changed.wait(REPEAT_SECONDS)
            now = self._clock.monotonic()
            for read in self._reads:
                if read.cancel_at <= now:
                    read.is_cancelled = True
                    self._cancel(read.raw)
            if not self._reads:
                self._thread = None
            return self._thread is not None


def _timed_out(limit: _Limit) -> ReadTimedOut:
    return ReadTimedOut(f"the query takes longer than {limit.seconds:g} s", hint=limit.hint)
