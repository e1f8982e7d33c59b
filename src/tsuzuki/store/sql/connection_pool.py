"""The connection pool of a process: one for transactions, reads and single statements alike.

Last in, first out: the connection used last has its statements prepared. A connection that was idle for
`IDLE_SECONDS_MAX` is closed, so a process without work keeps one. If one turns out to be lost, all idle ones
are closed with it.

If the server has no connection left, a caller waits for one of this process to be put back. `VITAL` callers are
served first. An `UNBOUNDED` caller, who may keep a connection for as long as it likes, does not get the last
one: the heartbeat and the lease need it.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, Pool

from tsuzuki.model.clock import Clock, SystemClock

CONNECTIONS_MAX = 24

IDLE_SECONDS_MAX = 10.0
"""How long a connection is kept open while unused, if it is not the only one."""

WAIT_SECONDS = 1.0
"""How long to wait for a connection to be put back before trying again to open one."""

WAITS_MAX = 30
WAITS_MAX_IF_FULL = 2
"""How often to wait; fewer times if the server has none left and the caller can try again itself."""

GENERATION = "tsuzuki_generation"


class Use(Enum):
    """What a connection is taken for."""

    SHORT = "short"
    """A few statements of our own."""

    VITAL = "vital"
    """A heartbeat or a lease: if it is late, this process loses its runs or its leadership."""

    UNBOUNDED = "unbounded"
    """A transaction whose length other code decides, such as a handler's."""


class _ThreadState(threading.local):
    use = Use.SHORT


class ConnectionPool(Pool):
    """Each dialect has a subclass, which says what is clean and what is full."""

    clock: Clock = SystemClock()

    def __init__(self, creator: Any, **options: Any) -> None:
        # The code that opens a transaction ends it. What is put back otherwise is closed, not reset.
        super().__init__(creator, **{**options, "reset_on_return": None})
        self._options = options
        self._changed = threading.Condition()
        self._idle: deque[tuple[float, ConnectionPoolEntry]] = deque()
        self._in_use: dict[ConnectionPoolEntry, Use] = {}
        self._being_opened = 0
        self._unbounded = 0
        self._vital_waiting = 0
        self._generation = 0
        self._thread = _ThreadState()

    def is_clean(self, raw: Any) -> bool:
        """Whether the connection is alive, as far as we know, and without a transaction."""
        raise NotImplementedError

    def is_full(self, problem: BaseException) -> bool:
        """Whether a connection was refused because the server has none left."""
        raise NotImplementedError

    @contextmanager
    def used_for(self, use: Use) -> Iterator[None]:
        """What this thread takes inside the block is for this use."""
        before, self._thread.use = self._thread.use, use
        try:
            yield
        finally:
            self._thread.use = before

    # --- take -----------------------------------------------------------------------------------

    def take(self) -> ConnectionPoolEntry:
        """An idle connection, else a new one, else the next one that is put back. Raises what the driver
        raises, or `PoolTimeout`."""
        use = self._thread.use
        with self._changed:
            entry = self._take_idle(use)
        return self._open_or_wait(use) if entry is None else entry

    def _open_or_wait(self, use: Use) -> ConnectionPoolEntry:
        refusal: BaseException | None = None
        for waits in range(WAITS_MAX):
            if self._may_open():
                try:
                    return self._opened(use)
                except BaseException as problem:
                    if not self.is_full(problem):
                        raise
                    refusal = problem
            is_urgent = refusal is not None and use is not Use.UNBOUNDED
            if is_urgent and waits >= WAITS_MAX_IF_FULL:
                break
            if (entry := self._wait_for_idle(use)) is not None:
                return entry
        raise refusal or PoolTimeout(f"all {CONNECTIONS_MAX} connections are in use")

    def _may_open(self) -> bool:
        """Reserves a place if so."""
        with self._changed:
            count = len(self._idle) + len(self._in_use) + self._being_opened
            is_below = count < CONNECTIONS_MAX
            self._being_opened += is_below
        return is_below

    def _opened(self, use: Use) -> ConnectionPoolEntry:
        generation = self._generation
        try:
            entry = self._create_connection()
            entry.info[GENERATION] = generation
        finally:
            with self._changed:
                self._being_opened -= 1
        with self._changed:
            self._hand_out(entry, use)
        return entry

    def _wait_for_idle(self, use: Use) -> ConnectionPoolEntry | None:
        is_vital = use is Use.VITAL
        with self._changed:
            self._vital_waiting += is_vital
            try:
                self._changed.wait_for(lambda: self._has_idle_for(use), WAIT_SECONDS)
                return self._take_idle(use)
            finally:
                self._vital_waiting -= is_vital

    # --- with the lock held ---------------------------------------------------------------------

    def _has_idle_for(self, use: Use) -> bool:
        if not self._idle or (self._vital_waiting and use is not Use.VITAL):
            return False
        shared = len(self._idle) + len(self._in_use) - self._unbounded
        return use is not Use.UNBOUNDED or shared > 1

    def _take_idle(self, use: Use) -> ConnectionPoolEntry | None:
        if not self._has_idle_for(use):
            return None
        _, entry = self._idle.pop()
        self._hand_out(entry, use)
        return entry

    def _hand_out(self, entry: ConnectionPoolEntry, use: Use) -> None:
        self._in_use[entry] = use
        self._unbounded += use is Use.UNBOUNDED

    def _take_stale(self, now: float) -> list[ConnectionPoolEntry]:
        """Those that were unused for too long. The one that was used last stays."""
        stale = []
        while len(self._idle) > 1 and now - self._idle[0][0] >= IDLE_SECONDS_MAX:
            stale.append(self._idle.popleft()[1])
        return stale

    # --- put back -------------------------------------------------------------------------------

    def put_back(self, entry: ConnectionPoolEntry) -> None:
        now = self.clock.monotonic()
        raw = entry.dbapi_connection
        is_kept = (
            raw is not None
            and entry.info.get(GENERATION) == self._generation
            and self.is_clean(raw)
        )
        with self._changed:
            if self._in_use.pop(entry, None) is Use.UNBOUNDED:
                self._unbounded -= 1
            if is_kept:
                self._idle.append((now, entry))
            to_close = self._take_stale(now)
            self._changed.notify_all()
        for one in to_close if is_kept else [*to_close, entry]:
            one.close()

    def discard(self, entry: ConnectionPoolEntry, *, server_lost: bool) -> None:
        """It failed, or is in an unknown state."""
        entry.close()
        self.put_back(entry)
        if server_lost:
            self.close_idle()

    def close_idle(self) -> None:
        """Those in use are closed when they are put back."""
        with self._changed:
            self._generation += 1
            idle = [entry for _, entry in self._idle]
            self._idle.clear()
        for entry in idle:
            entry.close()

    # --- what SQLAlchemy calls ------------------------------------------------------------------

    def _do_get(self) -> ConnectionPoolEntry:
        return self.take()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        self.put_back(record)

    def _invalidate(
        self, connection: Any, exception: BaseException | None = None, _checkin: bool = True
    ) -> None:
        """A connection is lost, and so are all others."""
        super()._invalidate(connection, exception, _checkin)
        self.close_idle()

    def dispose(self) -> None:
        self.close_idle()

    def recreate(self) -> "ConnectionPool":
        options = {**self._options, "_dispatch": self.dispatch, "dialect": self._dialect}
        again = type(self)(self._creator, **options)
        again.clock = self.clock
        return again

    def checkedout(self) -> int:
        return len(self._in_use)

    def status(self) -> str:
        return f"{len(self._in_use)} connections in use, {len(self._idle)} idle"


def pool_of(engine: Engine) -> ConnectionPool:
    """Ask each time: disposing of an engine replaces its pool."""
    pool = engine.pool
    if not isinstance(pool, ConnectionPool):
        raise TypeError(f"not an engine of ours: its pool is {pool!r}")
    return pool
