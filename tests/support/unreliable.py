"""A database that fails like a real one: away before the statement, or silent after the commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tsuzuki.model.errors import Unreachable
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.prepared import AutocommitConnection


class UnreliableDatabase(Database):
    """Shares another database's connections. It behaves until it is told not to."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.engine, clock=database.clock)
        self._autocommit_pool = database._autocommit_pool
        self.is_away = False
        """Nothing gets through."""
        self.replies_to_lose = 0
        """So many of the next writes are committed, and nobody hears of it."""
        self.crash_before_commit = False
        """The next write is done and then not committed."""
        self.before_commit: list[Callable[[], None]] = []
        """What happens elsewhere while the next write is under way, once."""
        self.after_commit: list[Callable[[], None]] = []
        """What happens elsewhere between the next commit and its answer, once."""

    @contextmanager
    def read(self) -> Iterator[Connection]:
        self._reach()
        with super().read() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        self._reach()
        with super().write() as connection:
            yield connection
            self._come_to_the_commit()
        self._answer()

    @contextmanager
    def statement(self) -> Iterator[AutocommitConnection]:
        """Fails as a transaction does, but that on PostgreSQL each statement is one by itself: what
        would happen before the commit happens before any of them."""
        self._reach()
        if not self.is_sqlite:
            self._come_to_the_commit()
        with super().statement() as line:
            yield line
            if self.is_sqlite:
                self._come_to_the_commit()
        self._answer()

    def _come_to_the_commit(self) -> None:
        _call_once(self.before_commit)
        if self.crash_before_commit:
            self.crash_before_commit = False
            raise Unreachable("the connection broke before the commit")

    def _answer(self) -> None:
        _call_once(self.after_commit)
        if self.replies_to_lose:
            self.replies_to_lose -= 1
            raise Unreachable("the connection broke after the commit")

    def _reach(self) -> None:
        if self.is_away:
            raise Unreachable("the database is away")


def _call_once(calls: list[Callable[[], None]]) -> None:
    pending, calls[:] = list(calls), []
    for call in pending:
        call()
