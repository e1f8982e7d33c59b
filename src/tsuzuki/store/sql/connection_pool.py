"""The connection pool of a process: one for transactions, reads and single statements alike.

The oldest idle connection is taken first: it has its statements prepared, and the others are used only as far as
they are needed. One that is seldom used is closed, so a process without work keeps one. If one turns out to be
lost, all idle ones are closed with it. One that was idle for a while is looked at before it is handed out, without a
statement: the server may have closed it meanwhile, by a restart or a failover.

If the server has no connection left, a caller waits for one of this process to be put back. `VITAL` callers are
served first. An `UNBOUNDED` caller, who may keep a connection for as long as it likes, does not get the last
one, nor the last place for one: the heartbeat and the lease need it. A forked child starts with an empty pool.
"""

import logging
import math
import threading
from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, Pool

from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.store.sql.forks import on_fork

CONNECTIONS_MAX = 24

REVIEW_SECONDS = 10.0
USES_PER_SECOND_MIN = 5.0
"""A connection that was used less often than that in `REVIEW_SECONDS` is closed, if there is an older one."""

VITAL_KEPT_SECONDS = 60.0
"""One that a `VITAL` caller has used is kept for at least this long: a heartbeat that has to open a connection while
many processes are busy may be late."""

IDLE_CHECK_SECONDS = 1.0
"""A connection that was idle for longer is looked at."""

COLLISION_SECONDS = 0.2
YIELD_SECONDS = 0.02
"""A caller that finds no idle connection waits for `YIELD_SECONDS` before it opens one, unless that has happened to
another caller within the last `COLLISION_SECONDS`: two loops that meet now and then need no second connection."""

WAIT_SECONDS = 1.0
"""How long to wait for a connection to be put back before trying again to open one."""

WAITS_MAX = 30
WAITS_MAX_IF_FULL = 2
"""How often to wait; fewer times if the server has none left and the caller can try again itself."""


@dataclass(kw_only=True)
class _Usage:
    """Kept with each connection; `order` is by age."""

    order: int
    generation: int
    reviewed_at: float
    uses: int = 0
    idle_since: float = 0.0
    vital_at: float = -math.inf
    """When a `VITAL` caller last took it."""


USAGE = "tsuzuki_usage"


class ConnectionUse(Enum):
    """What a connection is taken for."""

    SHORT = "short"
    """A few statements of our own."""

    VITAL = "vital"
    """A heartbeat or a lease: if it is late, this process loses its runs or its leadership."""

    UNBOUNDED = "unbounded"
    """A transaction whose length other code decides, such as a handler's."""


@dataclass(eq=False)
class _UseBlock:
    use: ConnectionUse
    is_over: bool = False


_USES: ContextVar[tuple[_UseBlock, ...]] = ContextVar("connection_uses", default=())
"""The blocks around this code, the innermost last. A context that was copied inside a block keeps it after its end."""


class ConnectionPool(Pool):
    """Each dialect has a subclass, which says what is clean and what is full."""

    clock: Clock = SystemClock()

    def __init__(self, creator: Any, **options: Any) -> None:
        # The code that opens a transaction ends it. What is put back otherwise is closed, not reset.
        super().__init__(creator, **{**options, "reset_on_return": None})
        # By its name it would be part of our own log.
        self.logger = logging.getLogger("sqlalchemy.pool")
        self._options = options
        self._generation = 0
        self._opened_so_far = 0
        self._of_parent: list[ConnectionPoolEntry] = []
        """Kept in a forked child, so that they are not closed as garbage."""
        self._start_empty()
        on_fork(self)

    def _start_empty(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[tuple[int, ConnectionPoolEntry]] = []
        """By age, the oldest last."""
        self._in_use: dict[ConnectionPoolEntry, ConnectionUse] = {}
        self._being_opened = 0
        self._unbounded = 0
        """How many of those in use or being opened are for unbounded use."""
        self._vital_waiting = 0
        self._collided_at = -math.inf

    def forget_parent(self) -> None:
        """Start with an empty pool in a forked child."""
        self._of_parent += [*(entry for _, entry in self._idle), *self._in_use]
        self._generation += 1
        self._start_empty()

    def is_clean(self, raw: Any) -> bool:
        """Whether the connection is alive, as far as we know, and without a transaction."""
        raise NotImplementedError

    def is_full(self, problem: BaseException) -> bool:
        """Whether a connection was refused because the server has none left."""
        raise NotImplementedError

    def is_closed_by_server(self, raw: Any) -> bool:
        """Whether the server has closed it, as far as can be known without a statement."""
        raise NotImplementedError

    @contextmanager
    def used_for(self, use: ConnectionUse) -> Iterator[None]:
        """Connections taken inside the block are for this use. A block belongs to a task, or to a thread without an
        event loop: coroutines that share a thread do not see each other's."""
        before, block = _USES.get(), _UseBlock(use)
        _USES.set((*before, block))
        try:
            yield
        finally:
            block.is_over = True
            _USES.set(before)

    @property
    def use(self) -> ConnectionUse:
        """What the caller takes connections for."""
        return next(
            (one.use for one in reversed(_USES.get()) if not one.is_over), ConnectionUse.SHORT
        )

    # --- take -----------------------------------------------------------------------------------

    def take(self) -> ConnectionPoolEntry:
        """An idle connection, else a new one, else the next one that is put back. Raises what the driver
        raises, or `PoolTimeout`."""
        use = self.use
        with self._changed:
            entry = self._take_idle(use)
            if entry is None and use is not ConnectionUse.UNBOUNDED:
                entry = self._yield_to_others(use)
        return self._open_or_wait(use) if entry is None else entry

    def _open_or_wait(self, use: ConnectionUse) -> ConnectionPoolEntry:
        refusal: BaseException | None = None
        for waits in range(WAITS_MAX):
            if self._may_open(use):
                try:
                    return self._opened(use)
                except BaseException as problem:
                    if not self.is_full(problem):
                        raise
                    refusal = problem
            is_urgent = refusal is not None and use is not ConnectionUse.UNBOUNDED
            if is_urgent and waits >= WAITS_MAX_IF_FULL:
                break
            if (entry := self._wait_for_idle(use)) is not None:
                return entry
        raise refusal or PoolTimeout(f"all {CONNECTIONS_MAX} connections are in use")

    def _may_open(self, use: ConnectionUse) -> bool:
        """Reserves a place if so."""
        with self._changed:
            count = len(self._idle) + len(self._in_use) + self._being_opened
            is_last = self._unbounded >= CONNECTIONS_MAX - 1
            may_open = count < CONNECTIONS_MAX and not (is_last and use is ConnectionUse.UNBOUNDED)
            self._being_opened += may_open
            self._unbounded += may_open and use is ConnectionUse.UNBOUNDED
        return may_open

    def reserve(self) -> bool:
        """Reserve a place for a connection that another process opens for unbounded use; false if there is none."""
        return self._may_open(ConnectionUse.UNBOUNDED)

    def release(self) -> None:
        """Give a reserved place back."""
        with self._changed:
            self._free_place(ConnectionUse.UNBOUNDED)

    def _opened(self, use: ConnectionUse) -> ConnectionPoolEntry:
        generation, now = self._generation, self.clock.monotonic()
        try:
            entry = self._create_connection()
        except BaseException:
            with self._changed:
                self._free_place(use)
            raise
        with self._changed:
            self._free_place(use)
            self._opened_so_far += 1
            order = -self._opened_so_far
            entry.info[USAGE] = _Usage(order=order, generation=generation, reviewed_at=now)
            self._hand_out(entry, use)
        return entry

    def _wait_for_idle(self, use: ConnectionUse) -> ConnectionPoolEntry | None:
        with self._changed:
            return self._wait(use, WAIT_SECONDS)

    # --- with the lock held ---------------------------------------------------------------------

    def _free_place(self, use: ConnectionUse) -> None:
        """The one that was reserved. A connection that was opened takes it before the lock is released."""
        self._being_opened -= 1
        self._unbounded -= use is ConnectionUse.UNBOUNDED

    def _yield_to_others(self, use: ConnectionUse) -> ConnectionPoolEntry | None:
        if len(self._in_use) == self._unbounded:
            return None
        before, self._collided_at = self._collided_at, self.clock.monotonic()
        is_rare = self._collided_at - before > COLLISION_SECONDS
        return self._wait(use, YIELD_SECONDS) if is_rare else None

    def _wait(self, use: ConnectionUse, seconds: float) -> ConnectionPoolEntry | None:
        is_vital = use is ConnectionUse.VITAL
        self._vital_waiting += is_vital
        try:
            self._changed.wait_for(lambda: self._has_idle_for(use), seconds)
            return self._take_idle(use)
        finally:
            self._vital_waiting -= is_vital

    def _has_idle_for(self, use: ConnectionUse) -> bool:
        if not self._idle or (self._vital_waiting and use is not ConnectionUse.VITAL):
            return False
        shared = len(self._idle) + len(self._in_use) - self._unbounded
        return use is not ConnectionUse.UNBOUNDED or shared > 1

    def _take_idle(self, use: ConnectionUse) -> ConnectionPoolEntry | None:
        if not self._has_idle_for(use):
            return None
        _, entry = self._idle.pop()
        if self._is_lost(entry):
            entry.close()
            self.close_idle()
            return None
        self._hand_out(entry, use)
        return entry

    def _is_lost(self, entry: ConnectionPoolEntry) -> bool:
        idle_seconds = self.clock.monotonic() - entry.info[USAGE].idle_since
        return idle_seconds > IDLE_CHECK_SECONDS and self.is_closed_by_server(
            entry.dbapi_connection
        )

    def _hand_out(self, entry: ConnectionPoolEntry, use: ConnectionUse) -> None:
        self._in_use[entry] = use
        self._unbounded += use is ConnectionUse.UNBOUNDED
        if use is ConnectionUse.VITAL:
            entry.info[USAGE].vital_at = self.clock.monotonic()

    def _take_seldom_used(self, now: float) -> list[ConnectionPoolEntry]:
        """Those to close. The oldest idle one stays."""
        seldom = []
        for _, entry in self._idle[:-1]:
            usage = entry.info[USAGE]
            seconds = now - usage.reviewed_at
            if seconds >= REVIEW_SECONDS:
                is_vital = now - usage.vital_at < VITAL_KEPT_SECONDS
                if not is_vital and usage.uses / seconds < USES_PER_SECOND_MIN:
                    seldom.append(entry)
                usage.reviewed_at, usage.uses = now, 0
        if seldom:
            self._idle = [one for one in self._idle if one[1] not in seldom]
        return seldom

    # --- put back -------------------------------------------------------------------------------

    def put_back(self, entry: ConnectionPoolEntry) -> None:
        now = self.clock.monotonic()
        raw = entry.dbapi_connection
        # SQLAlchemy clears it when it replaces a connection.
        usage: _Usage | None = entry.info.get(USAGE)
        is_current = usage is not None and usage.generation == self._generation
        is_kept = is_current and raw is not None and self.is_clean(raw)
        with self._changed:
            if self._in_use.pop(entry, None) is ConnectionUse.UNBOUNDED:
                self._unbounded -= 1
            if is_kept and usage is not None:
                usage.uses += 1
                usage.idle_since = now
                insort(self._idle, (usage.order, entry))
            to_close = self._take_seldom_used(now)
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
