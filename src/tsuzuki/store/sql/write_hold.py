"""A transaction of a run that holds the write lock of an SQLite file, and its end if it takes too long.

While one transaction holds the lock, no other process can write. So its time is limited: another thread rolls it back,
and its handler cannot write through that connection afterwards.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tsuzuki.model.errors import UsageError


class LockUser(NamedTuple):
    """The run that a transaction belongs to."""

    run_id: int
    job: str


class WriteHold:
    """`end` is called by a watch, all else by the thread of the transaction."""

    def __init__(self, user: LockUser, raw: Any, *, taken_at: float) -> None:
        self.user = user
        self.taken_at = taken_at
        """When it got the lock, by the monotonic clock."""
        self._raw = raw
        self._lock = threading.Lock()
        self._is_finished = False
        self._seconds_max: float | None = None
        """Set when it was rolled back for taking longer."""
        self._on_finish: Callable[[], None] | None = None

    def finish(self) -> None:
        """It is about to be committed or rolled back. Raises `UsageError` (`transaction_too_long`) if it was rolled
        back already."""
        with self._lock:
            self._is_finished = True
            if self._on_finish is not None:
                self._on_finish()
            if self._seconds_max is None:
                return
            self._raw.execute("PRAGMA query_only = OFF")
        raise UsageError(
            f"the transaction of run {self.user.run_id} held SQLite's write lock for more than {self._seconds_max:g} s "
            "and was rolled back",
            hint="Write in several short transactions, raise the setting transaction_seconds_max, or use PostgreSQL.",
            code="transaction_too_long",
        )

    def end(self, *, seconds_max: float) -> bool:
        """Roll it back and release the lock, unless it has finished meanwhile. Answers whether it was."""
        with self._lock:
            if self._is_finished or self._seconds_max is not None:
                return False
            self._seconds_max = seconds_max
            self._raw.interrupt()
            # Before the rollback: a later statement would be committed on its own.
            self._raw.execute("PRAGMA query_only = ON")
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            return True

    def announce(self, announce: Callable[[], None], *, on_finish: Callable[[], None]) -> None:
        """Call `announce`, unless it has finished, and `on_finish` when it finishes."""
        with self._lock:
            if not self._is_finished:
                self._on_finish = on_finish
                announce()
