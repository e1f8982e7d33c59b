"""Restore an SQLite database from a backup, and only while no process uses it.

A connection holds a shared lock on the file for as long as it is open. The restore takes that lock exclusively, so it
is refused while a process lives that has opened the database, and none opens it meanwhile. The old file is kept under
another name, with its write-ahead log.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tsuzuki.model.errors import Conflict, FileUnusable, UsageError
from tsuzuki.store.sql.database import Database

SUFFIXES = ("-wal", "-shm", "")
"""Of the files of one database. Its own comes last: as long as it has its name, nothing else is taken for it."""


def file_of(database: Database) -> Path:
    """The file to be replaced. Raises `UsageError` for a server."""
    if database.path is None:
        raise UsageError(
            "only an SQLite database is restored by this command",
            hint="Restore a dump of PostgreSQL with pg_restore, into a new database.",
            code="restore_sqlite_only",
        )
    return database.path


def restore(backup: Path, target: Path, *, kept: Path | None) -> None:
    """Put a copy of `backup` in place of `target`, which is renamed to `kept` if it exists. Raises `Conflict`
    (`database_in_use`) while a process has the database open."""
    _require_backup(backup)
    partial = target.with_name(f"{target.name}.restoring")
    try:
        with _unused(target):
            partial.unlink(missing_ok=True)
            _copy(backup, partial)
            for suffix in SUFFIXES:
                part = Path(f"{target}{suffix}")
                if kept is not None and part.exists():
                    part.rename(f"{kept}{suffix}")
            partial.rename(target)
            _make_durable(target.parent)
    except OSError as problem:
        raise FileUnusable(
            f"the backup cannot be restored: {problem.strerror or problem}",
            hint=f"May you write to {target.parent}, and is there disk space left?",
            code="restore",
        ) from problem
    finally:
        partial.unlink(missing_ok=True)


def _require_backup(backup: Path) -> None:
    """Refuse what is not an undamaged database of Tsuzuki, in one file."""
    try:
        location = f"{backup.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(location, uri=True)) as raw:
            damage = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
            raw.execute("SELECT 1 FROM job_runs LIMIT 1").fetchone()
    except sqlite3.Error as problem:
        damage = str(problem) if backup.exists() else "there is no such file"
    if _has_log(backup):
        damage = f"changes are in {backup.name}-wal beside it"
    if damage != "ok":
        raise UsageError(
            f"{backup} is not a usable backup: {damage}",
            hint="Name a file that was made by: tsuzuki db backup",
            code="backup_unusable",
        )


def _has_log(backup: Path) -> bool:
    log = Path(f"{backup}-wal")
    return log.exists() and log.stat().st_size > 0


@contextmanager
def _unused(target: Path) -> Iterator[None]:
    """Hold the lock that every open connection has a share of."""
    if not target.exists():
        yield
        return
    with target.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as problem:
            raise Conflict(
                f"{target} is in use by another process",
                hint="Stop every process that uses the database, then try again.",
                code="database_in_use",
            ) from problem
        yield


def _copy(backup: Path, partial: Path) -> None:
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with backup.open("rb") as source, os.fdopen(descriptor, "wb") as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _make_durable(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
