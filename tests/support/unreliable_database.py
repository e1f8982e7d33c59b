"""A database with injected faults: unreachable before a statement, or its reply lost after the commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tsuzuki.model.errors import Unreachable
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.prepared import AutocommitConnection
from tsuzuki.store.sql.write_hold import LockUser


class UnreliableDatabase(Database):
    """Shares the connections of another database. Without a fault set it behaves like it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.engine, clock=database.clock)
        self.is_away = False
        """Every request fails."""
        self.replies_to_lose = 0
        """Number of upcoming writes that are committed but whose replies are lost."""
        self.crash_before_commit = False
        """The next write fails before its commit."""
        self.before_commit: list[Callable[[], None]] = []
        """Called once, inside the next write before its commit: what another process does meanwhile."""
        self.after_commit: list[Callable[[], None]] = []
        """Called once, between the next commit and its reply."""

    @contextmanager
    def read(self) -> Iterator[Connection]:
        self._request()
        with super().read() as connection:
            yield connection

    @contextmanager
    def write(self, *, user: LockUser | None = None) -> Iterator[Connection]:
        self._request()
        with super().write(user=user) as connection:
            yield connection
            self._before_commit()
        self._reply()

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        """A single statement that fails like a transaction. On PostgreSQL each statement commits on its own, so
        faults before the commit occur before the first statement."""
        self._request()
        if not self.is_sqlite:
            self._before_commit()
        with super().statement() as connection:
            yield connection
            if self.is_sqlite:
                self._before_commit()
        self._reply()

    def _before_commit(self) -> None:
        _call_once(self.before_commit)
        if self.crash_before_commit:
            self.crash_before_commit = False
            raise Unreachable("the connection broke before the commit")

    def _reply(self) -> None:
        _call_once(self.after_commit)
        if self.replies_to_lose:
            self.replies_to_lose -= 1
            raise Unreachable("the connection broke after the commit")

    def _request(self) -> None:
        if self.is_away:
            raise Unreachable("the database is unreachable")


def _call_once(calls: list[Callable[[], None]]) -> None:
    pending, calls[:] = list(calls), []
    for call in pending:
        call()
