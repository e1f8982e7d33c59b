"""Database maintenance: upgrade, check, back up.

Every command upgrades, so imports needed only for other operations are made where they are used.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tsuzuki.model.errors import Unreachable
from tsuzuki.services.collector_tables import CollectorTables
from tsuzuki.store.inspection import Finding, inspect_database
from tsuzuki.store.schema.migrate import Upgrade
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.sqlite import answering_signals
from tsuzuki.store.sql.sqlite_lock import LockHolder, lock_holder
from tsuzuki.store.sql.sqlite_snapshot import is_snapshot

__all__ = ["Backup", "Finding", "Maintenance", "Upgrade", "answering_signals"]

T = TypeVar("T")

PAUSE_FIRST_SECONDS = 0.25
PAUSE_MAX_SECONDS = 5.0
"""Between two attempts to reach the database."""


@dataclass(frozen=True, kw_only=True)
class Backup:
    """A finished copy."""

    path: Path
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Restored:
    """The database after a restore, and under which name the old one was kept."""

    path: Path
    kept: Path | None


def _growing_pauses() -> Iterator[float]:
    pause_seconds = PAUSE_FIRST_SECONDS
    while True:
        yield pause_seconds
        pause_seconds = min(pause_seconds * 2, PAUSE_MAX_SECONDS)


class Maintenance:
    """Upgrade, check, back up and restore the database."""

    def __init__(self, *, database: Database, tables: CollectorTables, folder: Path) -> None:
        self._database = database
        self._tables = tables
        self._folder = folder

    def upgrade(self) -> list[Upgrade]:
        """Bring the tables of the engine and of the collectors in use to this version; a no-op when they are there.
        A plug-in whose tables cannot be upgraded is refused, and the others continue."""
        return self._tables.upgrade()

    @property
    def snapshot_of(self) -> Path | None:
        """The SQLite file of which only a snapshot can be read, because nothing can be written beside it."""
        path = self._database.path
        return path if path is not None and is_snapshot(path) else None

    def require_same_file(self) -> None:
        """Raise `DatabaseReplaced` if the file of an SQLite database was deleted or replaced since it was opened."""
        self._database.check_file()

    @property
    def lock_file(self) -> Path | None:
        """The file whose write lock commands share; None for a server."""
        return self._database.path

    def lock_wait_seconds(self) -> float:
        """How long this process has been waiting for that lock."""
        return self._database.lock_wait_seconds()

    def lock_holder(self) -> LockHolder | None:
        """The process that holds it, and its run, if that is known."""
        return lock_holder(self._database.path) if self._database.path else None

    def retry_while_unreachable(
        self, act: Callable[[], T], *, seconds: float, stop: threading.Event
    ) -> T:
        """Call it until the database answers, for that long at most and not after `stop`. A server that answers
        but refuses us is an error at once."""
        from tsuzuki.engine.log import log

        clock = self._database.clock
        started_at, reported = clock.monotonic(), ""
        for pause_seconds in _growing_pauses():
            try:
                answer = act()
            except Unreachable as problem:
                left = started_at + seconds - clock.monotonic()
                is_over = left <= 0 or stop.is_set()
                if is_over or not self._database.may_become_reachable(problem):
                    raise
                if problem.message != reported:
                    reported = problem.message
                    log.warning(
                        "database unreachable, waiting for it",
                        error=problem.message,
                        hint=problem.hint,
                        give_up_after_seconds=round(left, 1),
                    )
                clock.wait(stop, min(pause_seconds, left))
                continue
            if reported:
                waited = round(clock.monotonic() - started_at, 1)
                log.info("database reachable", after_seconds=waited)
            break
        return answer

    def exists(self) -> bool:
        """Whether there is a database to look at. SQLite makes a file by looking, so ask first; a
        server tells by itself."""
        path = self._database.path
        return path is None or path.exists()

    def require_existing(self) -> None:
        if not self.exists():
            raise Unreachable(
                f"no database at {self._database.path}",
                hint="Create it with: tsuzuki db upgrade",
                code="database_missing",
            )

    def require_current(self) -> None:
        """Refuse tables of another version, older ones too. Those of a plug-in refuse only its collector."""
        self._tables.require_current()

    def require_writable(self) -> None:
        """Raises `Unreachable` or `NotPermitted` if nothing can be written: a standby, a read-only file."""
        from tsuzuki.store.jobs import require_writable

        with self._database.write() as connection:
            require_writable(connection)

    def check(self) -> list[Finding]:
        """Look at everything, change nothing."""
        return inspect_database(self._database, self._tables.in_use())

    def back_up(self, target: Path | None = None) -> Backup:
        """Copy the database as it is at this moment, whatever version it is of. Writers go on."""
        from tsuzuki.store import backup

        self.require_existing()
        with self._database.read():
            pass  # a database that does not answer is told as such, not as a failed copy
        path = target or self._default_target()
        return Backup(path=path, size_bytes=backup.back_up(self._database, path))

    def restore(self, source: Path) -> Restored:
        """Put a backup in place of an SQLite database that no process uses. The old file is kept."""
        from tsuzuki.store import restore

        path = restore.file_of(self._database)
        stamp = self._database.clock.now().strftime("%Y%m%dT%H%M%SZ")
        kept = path.with_name(f"{path.stem}-{stamp}.replaced.db")
        self._database.close()
        is_kept = restore.restore(source, path, kept=kept)
        return Restored(path=path, kept=kept if is_kept else None)

    def _default_target(self) -> Path:
        stamp = self._database.clock.now().strftime("%Y%m%dT%H%M%SZ")
        source = self._database.path
        if source is not None:
            return source.with_name(f"{source.stem}-{stamp}.backup.db")
        return self._folder / f"tsuzuki-{stamp}.dump"
