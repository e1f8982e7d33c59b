"""The write transactions that a process has open, and the refusal of one that would wait for itself.

A write transaction inside another one waits for a lock that the outer one holds: on SQLite always, on PostgreSQL as
soon as both touch the same row. "Inside" is a matter of tasks and not of threads: coroutines on one event loop share a
thread, and each may await inside a transaction of its own. But statements block the thread, so a coroutine that waits
for a lock of another coroutine on its loop keeps that one from ever releasing it.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tsuzuki.model.errors import UsageError
from tsuzuki.store.sql.write_hold import LockUser


class _Transaction:
    """Compared by identity. Forgets its task and loop at its end: a context that was copied inside keeps it."""

    __slots__ = ("loop", "task", "thread_id", "user")

    def __init__(self, user: LockUser | None) -> None:
        self.user = user
        self.thread_id = threading.get_ident()
        self.loop = _running_loop()
        self.task = asyncio.current_task() if self.loop is not None else None

    def is_opened_by_caller(self) -> bool:
        """Whether the code that calls this has opened it: the same task or, without one, the same thread."""
        if self.task is None:
            return self.thread_id == threading.get_ident()
        return _running_loop() is self.loop and asyncio.current_task() is self.task

    def forget(self) -> None:
        self.loop = self.task = None


_INSIDE: ContextVar[tuple[_Transaction, ...]] = ContextVar("inside_transactions", default=())
"""The transactions opened around this code, of all databases. Some may have ended since."""


class OpenTransactions:
    """The open write transactions of one database in this process. `one_writer`: all of them need the same lock."""

    def __init__(self, *, one_writer: bool) -> None:
        self._one_writer = one_writer
        self._open: set[_Transaction] = set()

    def check(self, user: LockUser | None) -> None:
        """Raise `UsageError` (`transaction_deadlock`) if a transaction of this user would wait forever for one that
        cannot go on meanwhile, and `RuntimeError` if the caller has that one open itself."""
        held_up = self._held_up()
        if any(one.is_opened_by_caller() for one in held_up):
            raise RuntimeError("a write transaction was opened inside another one")
        if any(self._one_writer or _is_same_run(one.user, user) for one in held_up):
            raise UsageError(
                "this transaction would wait forever: the previous one is open in a coroutine that "
                "cannot continue in the meantime",
                hint="Do not await inside `with app.transaction()`: await first, then write. A handler "
                "that takes `run` can await inside `run.transaction()`, one at a time.",
                code="transaction_deadlock",
            )

    @contextmanager
    def opened(self, user: LockUser | None) -> Iterator[None]:
        """Count the block as a transaction that is open. It may be left in another thread than it was entered in."""
        one = _Transaction(user)
        self._open.add(one)
        _INSIDE.set((*_INSIDE.get(), one))
        try:
            yield
        finally:
            self._open.discard(one)
            one.forget()
            _INSIDE.set(tuple(other for other in _INSIDE.get() if other is not one))

    @property
    def is_any_held_up(self) -> bool:
        """Whether a transaction is open that cannot end while the caller waits."""
        return bool(self._held_up())

    def _held_up(self) -> list[_Transaction]:
        """Open transactions that make no progress while the caller waits: those around it, also if another task or
        thread opened them and waits for the caller, and those of coroutines on its event loop."""
        if not self._open:
            return []
        inside, loop = _INSIDE.get(), _running_loop()
        return [
            one for one in [*self._open] if one in inside or (loop is not None and one.loop is loop)
        ]


def _is_same_run(one: LockUser | None, other: LockUser | None) -> bool:
    """Whether both lock the row of the same run."""
    return one is not None and one.run_id is not None and one == other


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
