"""Restore an SQLite database from a backup, and only while no process uses it.

A connection holds a shared lock on the file for as long as it is open. The restore takes that lock exclusively, so it
is refused while a process lives that has opened the database, and none opens it meanwhile. The old file is kept under
another name.

A restore that is killed leaves the old database or the backup under its name. SQLite would apply any log that it finds
beside a file, so the old file and its log must never be apart: the log is merged into the file first, then the backup
takes its place in one step.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tsuzuki.model.errors import Conflict, FileUnusable, UsageError
from tsuzuki.store.sql.database import Database


def file_of(database: Database) -> Path:
    """The file to be replaced. Raises `UsageError` for a server."""
    if database.path is None:
        raise UsageError(
            "this command restores only SQLite databases",
            hint="Restore a PostgreSQL dump with pg_restore into a new database.",
            code="restore_sqlite_only",
        )
    return database.path


def restore(backup: Path, target: Path, *, kept: Path) -> bool:
    """Put a copy of `backup` in place of `target`, which is kept as `kept`. Answers whether there was anything to keep.
    Raises `Conflict` (`database_in_use`) while a process has the database open."""
    _require_backup(backup)
    partial = target.with_name(f"{target.name}.restoring")
    try:
        _merge_log(target)
        with _unused(target):
            partial.unlink(missing_ok=True)
            _copy(backup, partial)
            is_kept = _keep(target, kept)
            _remove_log(target)
            partial.rename(target)
            _make_durable(target.parent)
            return is_kept
    except OSError as problem:
        raise FileUnusable(
            f"cannot restore the backup: {problem.strerror or problem}",
            hint=f"Check that {target.parent} is writable and has free disk space.",
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
            raw.execute("SELECT 1 FROM tsuzuki_job_runs LIMIT 1").fetchone()
    except sqlite3.Error as problem:
        damage = str(problem) if backup.exists() else "no such file"
    if _has_log(backup):
        damage = f"changes are in {backup.name}-wal next to it"
    if damage != "ok":
        raise UsageError(
            f"{backup} is not a usable backup: {damage}",
            hint="Name a file created by: tsuzuki db backup",
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


def _merge_log(target: Path) -> None:
    """Write the commits of the log into the old file, so that it is whole without the log. SQLite removes the log then.
    What is no database stays as it is, with its log."""
    if target.exists() and _has_log(target):
        with suppress(sqlite3.Error), closing(sqlite3.connect(target, timeout=0)) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _keep(target: Path, kept: Path) -> bool:
    """Give the old files a second name. The log comes first: a kept database never lacks it."""
    old = [suffix for suffix in ("-wal", "") if Path(f"{target}{suffix}").exists()]
    for suffix in old:
        _link(Path(f"{target}{suffix}"), Path(f"{kept}{suffix}"))
    _make_durable(target.parent)
    return bool(old)


def _link(file: Path, second: Path) -> None:
    try:
        second.hardlink_to(file)
    except OSError:  # some file systems have no hard links
        _copy(file, second)


def _remove_log(target: Path) -> None:
    """A log that could not be merged goes after its file, which is kept: the backup must not get it, nor the old file
    lose it."""
    if _has_log(target):
        target.unlink(missing_ok=True)
    for suffix in ("-wal", "-shm"):
        Path(f"{target}{suffix}").unlink(missing_ok=True)
    _make_durable(target.parent)


def _copy(file: Path, copied: Path) -> None:
    descriptor = os.open(copied, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with file.open("rb") as source, os.fdopen(descriptor, "wb") as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _make_durable(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
