"""A transaction that holds the write lock of an SQLite file, who opened it, and the end of a run's one if it takes too
long.

While one transaction holds the lock, no other process can write. So the time of a run's transaction is limited: another
thread rolls it back, and its handler cannot write through that connection afterwards.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tsuzuki.model.errors import UsageError

OPERATIONS_PER_CHECK = 1_000_000
"""SQLite's virtual machine executes that many in a few hundredths of a second, then asks whether to abort."""

HOLD = "tsuzuki_hold"
"""The execution option of a connection that is its hold."""


class LockUser(NamedTuple):
    """Who opened a transaction: a run of a job, or a caller with another purpose, such as `app.transaction()`."""

    run_id: int | None = None
    job: str | None = None
    purpose: str = ""


class WriteHold:
    """`end` is called by a watch, all else by the thread of the transaction."""

    def __init__(self, user: LockUser, *, taken_at: float, raw: Any = None) -> None:
        """With `raw`, the driver's connection, the transaction can be ended."""
        self.user = user
        self.taken_at = taken_at
        """When it got the lock, by the monotonic clock."""
        self._raw = raw
        self._thread = threading.current_thread()
        self._lock = threading.Lock()
        self._is_finished = False
        self._seconds_max: float | None = None
        """Set as soon as it took longer: from then on it is never committed."""
        self._is_rolled_back = False
        self._on_finish: Callable[[], None] | None = None
        # `interrupt()` would also abort the rollback if the handler has a result that it has not read to the end.
        if raw is not None:
            raw.set_progress_handler(self._took_too_long, OPERATIONS_PER_CHECK)

    @property
    def purpose(self) -> str:
        """What the transaction is for if it is not a run's: as its caller says, else the name of its thread."""
        if self.user.run_id is not None:
            return ""
        return self.user.purpose or f"thread {self._thread.name}"

    def _took_too_long(self) -> bool:
        """Called by SQLite while a statement runs: whether to abort the statement."""
        return self._seconds_max is not None

    def finish(self) -> None:
        """Allow the commit or rollback that follows. Raises `UsageError` (`transaction_too_long`) if the transaction
        was ended before."""
        with self._lock:
            self._is_finished = True
            if self._raw is not None:
                self._raw.set_progress_handler(None, 0)
            if self._on_finish is not None:
                self._on_finish()
        if self._seconds_max is None:
            return
        raise UsageError(
            f"the transaction of run {self.user.run_id} held SQLite's write lock for more than "
            f"{self._seconds_max:g} s and was rolled back",
            hint="Write in several short transactions, raise the setting transaction_seconds_max, or use PostgreSQL.",
            code="transaction_too_long",
        )

    def end(self, *, seconds_max: float) -> bool:
        """Roll the transaction back and release the lock, and return whether this call did; call it again if it raises.
        A running statement is aborted first, and the connection is read-only afterwards."""
        with self._lock:
            if self._raw is None or self._is_finished or self._is_rolled_back:
                return False
            self._seconds_max = seconds_max
            # Before the rollback: a later statement would be committed on its own.
            self._raw.execute("PRAGMA query_only = ON")
            self._raw.rollback()
            self._is_rolled_back = True
            return True

    @property
    def is_ended(self) -> bool:
        """Whether the transaction took too long. Its connection may be read-only and must not be reused."""
        return self._seconds_max is not None

    def wait_for_end(self) -> None:
        """Wait for an `end` in progress. SQLite rolls back by itself when a write is aborted, so a handler that catches
        that error could commit its next write before the connection is read-only."""
        with self._lock:
            pass

    def announce(self, announce: Callable[[], None], *, on_finish: Callable[[], None]) -> None:
        """Call `announce`, unless it has finished, and `on_finish` when it finishes."""
        with self._lock:
            if not self._is_finished:
                self._on_finish = on_finish
                announce()
