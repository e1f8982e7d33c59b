"""Online backup: a consistent snapshot of the database, while writers go on.

SQLite: VACUUM INTO, one read transaction over the whole file. PostgreSQL: pg_dump, one snapshot. Atomic: the
copy appears under its name only when it is complete; a crash leaves at most a `.partial` file.
"""

import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from tsuzuki.model.errors import ConfigurationError, Conflict, FileUnusable, Unreachable
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.database_url import as_libpq


def back_up(database: Database, target: Path) -> int:
    """Write a copy to `target`, which must not exist yet. Answers its size in bytes."""
    if target.exists():
        raise Conflict(
            f"{target} already exists",
            hint="Choose another name; backups never overwrite files.",
            code="backup_exists",
        )
    partial = target.with_name(target.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        # Empty, and for its owner only: both programs write into it and keep its mode.
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if database.is_sqlite:
            _copy_sqlite(database, partial)
        else:
            _dump_postgres(database.session_engine.url, partial)
        _publish(partial, target)
    except OSError as problem:
        raise FileUnusable(
            f"cannot write the backup: {problem.strerror or problem}",
            hint=f"Check that {target.parent} is writable and has free disk space.",
            code="backup",
        ) from problem
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


def _copy_sqlite(database: Database, partial: Path) -> None:
    with database.engine.connect() as connection:
        # VACUUM cannot run inside a transaction, so this bypasses our BEGIN.
        raw: Any = connection.connection.driver_connection
        try:
            raw.execute("VACUUM INTO ?", (str(partial),))
        except sqlite3.OperationalError as problem:
            raise FileUnusable(
                f"the backup failed: {problem}",
                hint=f"Check that {partial.parent} is writable and has free disk space.",
                code="backup",
            ) from problem


def _dump_postgres(url: URL, partial: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise ConfigurationError(
            "backing up PostgreSQL requires pg_dump, which is not on the PATH",
            hint="Install the PostgreSQL client programs, in the server's version or newer.",
            code="pg_dump_missing",
        )
    environment = dict(os.environ)
    if url.password:
        environment["PGPASSWORD"] = str(url.password)  # never on the command line
    done = subprocess.run(  # noqa: S603 -- our own arguments, no shell
        [program, "--format=custom", f"--file={partial}", f"--dbname={as_libpq(url)}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Unreachable(
            f"pg_dump failed: {lines[-1] if lines else f'exit code {done.returncode}'}",
            hint="Check that pg_dump is at least as new as the server.",
            code="backup",
        )


def _publish(partial: Path, target: Path) -> None:
    """Make the copy durable, give it its name, then make the name durable (fsync)."""
    with partial.open("rb") as copy:
        os.fsync(copy.fileno())
    # A link, not a rename, which in a race would overwrite a file that appeared meanwhile.
    os.link(partial, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
