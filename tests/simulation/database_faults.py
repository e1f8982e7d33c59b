"""Faults between a client and the database: a request that fails or hangs, a reply that is lost.

A client yields before and after each transaction, never inside one: SQLite has one writer, and what a
process has read is as stale after such a switch as after any other. In autocommit mode every statement is a
transaction of its own, as on PostgreSQL. Faults are injected at these points only.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from simulation.scheduler import GreenletExit
from simulation.violations import InvariantViolated
from tsuzuki.model.errors import TsuzukiError, Unreachable
from tsuzuki.store.sql.autocommit import AutocommitConnection
from tsuzuki.store.sql.database import Connection, ConnectionUse, Database
from tsuzuki.store.sql.driver_errors import translate_errors
from tsuzuki.store.sql.write_hold import LockUser

if TYPE_CHECKING:
    from simulation.client import Client


class InjectionPoint(StrEnum):
    """Where a fault can be injected."""

    BEFORE_READ = "before a read"
    AFTER_READ = "after a read"
    BEFORE_WRITE = "before a write"
    BEFORE_COMMIT = "before a commit"
    AFTER_COMMIT = "after a commit"


LATER_SECONDS = (0.0, 0.0, 0.1, 2.0)
"""A request in flight while disconnected arrives so long after the reconnect, or never."""


class LostInFailover(Exception):
    """The commit is confirmed, and the standby that becomes the primary does not have it."""


class ClientAutocommit(AutocommitConnection):
    """Autocommit mode on the shared store: a client yields, and may fail, around each statement."""

    def __init__(self, database: "ClientDatabase") -> None:
        self.dialect = database.engine.dialect
        self.has_sent = False
        self._database = database
        self._raw = database.shared_raw
        self._cursor = self._raw.cursor()

    def send(self, sql: str, values: Any = (), *, has_rows: bool = False) -> tuple[list[Any], int]:
        database = self._database
        with database.read() if sql.startswith("SELECT") else database.write():
            answer = super().send(sql, values, has_rows=has_rows)
        self.has_sent = True
        return answer

    def notify(self, names: Collection[str]) -> None:
        self._database.commit_wakeups(names)


class ClientDatabase(Database):
    """The shared store as one client reaches it."""

    def __init__(self, client: "Client") -> None:
        world = client.world
        super().__init__(world.store.engine, clock=client.clock)
        self.client = client
        self._world = world
        self._store = world.store
        self.shared_raw = world.store.raw
        self._changes_before = 0

    def adopt(self, connection: Connection) -> None:
        """The shared connection has the database's clock."""

    def used_for(self, use: ConnectionUse) -> AbstractContextManager[None]:
        """All share one connection."""
        return nullcontext()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        self._request(InjectionPoint.BEFORE_READ)
        with translate_errors(self.engine.url), self._store.read() as connection:
            yield connection
        self._yield_at(InjectionPoint.AFTER_READ)

    @contextmanager
    def write(self, *, user: LockUser | None = None) -> Iterator[Connection]:
        asked_at = self.clock.monotonic()
        self._request(InjectionPoint.BEFORE_WRITE)
        self._wait_for_write_lock(asked_at)
        raw = self._store.raw
        try:
            with translate_errors(self.engine.url), self._store.write() as connection:
                self._world.pending_wakeups.clear()
                self._world.writing = self
                self._changes_before = raw.total_changes
                self._store.row_locks.begin(self._world.scheduler.current)
                yield connection
                self._inject(InjectionPoint.BEFORE_COMMIT)
                if self.client.fault_rates.fails(self._world.random):
                    raise self._unreachable("the connection broke before the commit")
                if self._world.loses_next_term and self._world.invariants.is_new_term():
                    raise LostInFailover
        except LostInFailover:
            self._world.on_lost_term(self.client)
            self._changes_before = raw.total_changes
        except (TsuzukiError, GreenletExit, InvariantViolated):
            raise
        except Exception as problem:
            error = getattr(problem, "orig", problem)
            raise InvariantViolated(f"the database refused a statement: {error}") from problem
        changes = raw.total_changes - self._changes_before
        kinds = self._world.invariants.after_commit(self.client, changes)
        self._world.deliver_wakeups()
        self._reply(kinds)

    def let_others_commit(self) -> None:
        """In the middle of a transaction that has moved no run yet. What it has written is visible to them too early,
        so it must be one that is not rolled back: the confirmation of a bulk cancel, by a client without faults."""
        world = self._world
        has_written = self._store.raw.total_changes != self._changes_before
        if world.invariants.has_moved() or (
            has_written and not self.client.fault_rates.is_peaceful
        ):
            return
        fiber, wakeups = world.scheduler.current, set(world.pending_wakeups)
        world.writing = None
        with self._store.left_open():
            self._delay()
        world.writing, world.pending_wakeups = self, wakeups
        self._changes_before = self._store.raw.total_changes
        self._store.row_locks.begin(fiber)

    def _wait_for_write_lock(self, asked_at: float) -> None:
        """Until the handler that holds it, if one does, has ended its transaction."""
        lock = self._world.write_lock
        if not lock.is_free.is_set():
            self._lock_wanted_at = asked_at
            self._world.coverage["a writer waited for the write lock"] += 1
            while not lock.is_free.is_set():
                self._world.scheduler.sleep(1.0, lock.is_free)
                self._exit_if_dead()
        self._lock_asked_at = asked_at
        self._on_lock_taken()

    def hold_write_lock(self, run_id: int, seconds: float) -> None:
        """Inside a handler's transaction on SQLite: keep it open, and with it the write lock of the file."""
        world = self._world
        world.log(f"run {run_id} holds the write lock for {seconds:.1f} s")
        world.coverage["a handler held the write lock"] += 1
        with self._store.left_open(), world.write_lock.held():
            world.scheduler.sleep(seconds)
            self._exit_if_dead()
        world.pending_wakeups.clear()

    def hold_row(self, run_id: int, seconds: float) -> None:
        """Inside a handler's transaction: keep it open, with the row of its run locked."""
        world, locks = self._world, self._store.row_locks
        fiber = world.scheduler.current
        world.log(f"run {run_id} stays locked for {seconds:.1f} s")
        world.coverage["a handler held its row"] += 1
        met = locks.met
        world.row_free_at[run_id] = float("inf")
        try:
            with self._store.left_open(), locks.held(run_id, fiber):
                world.scheduler.sleep(seconds)
                self._exit_if_dead()
        finally:
            world.row_free_at[run_id] = world.scheduler.now
        world.coverage["a locked row was skipped"] += locks.met - met
        locks.begin(fiber)
        world.pending_wakeups.clear()
        if self.client.is_disconnected:
            raise self._unreachable("the connection broke inside the transaction")

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        connection = ClientAutocommit(self)
        try:
            yield connection
        except (Unreachable, GreenletExit):
            if connection.has_sent:
                self._world.coverage["interrupted between two statements"] += 1
            raise

    def commit_wakeups(self, names: Collection[str]) -> None:
        """In autocommit mode a wake-up is sent by itself, and may be lost by itself."""
        with self.write():
            self._world.pending_wakeups.update(names)

    def now(self, connection: Connection) -> Any:
        """One clock for all clients, as on a database server."""
        return self._world.database_clock.now()

    def _request(self, point: InjectionPoint) -> None:
        self._yield_at(point)
        if self.client.fault_rates.fails(self._world.random):
            self._world.coverage["a request failed"] += 1
            raise self._unreachable("the request did not get through")

    def _reply(self, kinds: list[str]) -> None:
        """The commit is done; its reply may be lost."""
        self._inject(InjectionPoint.AFTER_COMMIT)
        lost = self.client.fault_rates.loses_reply(self._world.random)
        self._delay()
        if lost or (self.client.is_disconnected and not self._arrives_late()):
            self._world.coverage["a reply was lost"] += 1
            for kind in kinds:
                self._world.coverage[f"lost reply: {kind}"] += 1
            self._world.log(f"the reply is lost: {', '.join(kinds) or 'no move'}")
            raise self._unreachable("the connection broke after the commit")

    def _yield_at(self, point: InjectionPoint) -> None:
        self._inject(point)
        self._delay()
        if self.client.is_disconnected:
            self._world.coverage["the database was unreachable"] += 1
            if not self._arrives_late():
                raise self._unreachable("the database is unreachable")

    def _delay(self) -> None:
        self._world.scheduler.sleep(self.client.fault_rates.delay_seconds(self._world.random))
        self._exit_if_dead()

    def _arrives_late(self) -> bool:
        """A lost connection may fail at once, or hang until the reconnect; then the request in flight may
        still arrive, each after its own delay."""
        if not self.client.is_disconnected_silently:
            return False
        while self.client.is_disconnected:
            self._world.scheduler.sleep(
                min(0.5, self.client.disconnected_until - self._world.scheduler.now)
            )
            self._exit_if_dead()
        if self._world.random.random() < 0.5:
            return False
        self._world.coverage["a request arrived late"] += 1
        self._world.scheduler.sleep(self._world.random.choice(LATER_SECONDS))
        self._exit_if_dead()
        return True

    def _inject(self, point: InjectionPoint) -> None:
        self._exit_if_dead()
        inject: Callable[[], None] | None = self.client.fault_at(point)
        if inject is not None:
            inject()
            self._exit_if_dead()

    def _unreachable(self, sentence: str) -> Unreachable:
        self.client.unreachable_at = self._world.scheduler.now
        return Unreachable(sentence)

    def _exit_if_dead(self) -> None:
        if self.client.is_dead:
            raise GreenletExit
