"""The leader's lease: whether this process leads, and until when it may believe so.

A term is believed only until a deadline on our own monotonic clock, counted from before the statement that
won or renewed it and a margin short of the lease. So a leader stops by itself before another can lead, and
its writes after a long pause are fenced: refused because their term is over.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import leadership
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import ConnectionUse, Database


class OnDatabaseTime(Protocol):
    def __call__(self, now: datetime, *, asked_at: float) -> None:
        """`now` is the database's time, just read; `asked_at` our monotonic time before it was read."""


class Lease:
    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        settings: Callable[[], EngineSettings],
        holder: str,
        on_database_time: OnDatabaseTime = lambda *_args, **_options: None,
    ) -> None:
        """`on_database_time` is called with each reading of the database's clock."""
        self._database = database
        self._clock = clock
        self._settings = settings
        self._holder = holder
        self._on_database_time = on_database_time
        self._term: Term | None = None
        self._believed_until = 0.0

    @property
    def term(self) -> Term | None:
        """Our term, while we may believe in it."""
        term = self._term
        return term if term and self._clock.monotonic() < self._believed_until else None

    def tick(self) -> bool:
        """Renew our lease, or take a free one; true when we lead afterwards. On any error the term is
        given up: only the database knows whether it still holds. A lease that is confirmed after its deadline, as
        after a long wait for the write lock, is released: we must not use it, and nobody else could until it ends."""
        asked_at = self._clock.monotonic()
        settings = self._settings()
        # A term that is being renewed still holds, until its old deadline: leading goes on.
        term = self._term = self.term
        try:
            with self._database.used_for(ConnectionUse.VITAL):
                held = self._take_or_renew(term, settings.lease_seconds)
        except BaseException:
            self._term = None
            raise
        if held is not None:
            self._believed_until = asked_at + settings.lease_seconds - settings.lease_margin_seconds
        self._term = held
        if self.term is None:
            self.step_down()
        return self.term is not None

    def seconds_until_free(self) -> float:
        """When it is worth trying to lead: 0 if no process does. A lease that would last longer than
        it was taken for (clock skew: the clock was set back since) is shortened first."""
        remaining = self._remaining()
        if not remaining.is_possible:
            with self._database.statement() as connection:
                leadership.shorten_overlong_lease(connection, remaining)
            remaining = self._remaining()
        return remaining.seconds

    def step_down(self) -> None:
        """Let another process lead at once."""
        term, self._term = self._term, None
        if term is not None:
            with self._database.used_for(ConnectionUse.VITAL), self._database.write() as connection:
                leadership.release(connection, term=term)

    def _take_or_renew(self, term: Term | None, lease_seconds: float) -> Term | None:
        with self._database.statement() as connection:
            if term is None:
                return leadership.take(connection, holder=self._holder, lease_seconds=lease_seconds)
            renewed = leadership.renew(connection, term=term, lease_seconds=lease_seconds)
            return term if renewed else None

    def _remaining(self) -> leadership.LeaseRemaining:
        asked_at = self._clock.monotonic()
        with self._database.read() as connection:
            remaining = leadership.lease_remaining(connection)
        self._on_database_time(remaining.read_at, asked_at=asked_at)
        return remaining
