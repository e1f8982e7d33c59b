"""The content of another index file, copied page by page into an empty one.

It is copied into a temporary database first and made a new tree's there. What our own file gets is complete, and it
gets it in one transaction. The other file is only read: its writer neither waits nor is waited for.
"""

import sqlite3
from collections.abc import Callable

from tsuzuki.collectors.codeindex.queries import files

STEPS = 4
"""Of a copy: `may_write` is asked after the first one, when the write lock is held and nothing is committed."""


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nothing was ever stored. Only such an index is replaced."""
    (used,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM files) OR EXISTS (SELECT 1 FROM names)"
    ).fetchone()
    return not used


def prepared_copy(other: sqlite3.Connection, own: sqlite3.Connection) -> sqlite3.Connection:
    """A temporary database, which goes with its connection: every file of `other` with what was found in it, and the
    facts and the builds of `own`. A size and an mtime were those of another tree's file: the stored hash alone says
    what a row was made from, so no mtime may match. What was stale there is left out. A damaged file is refused."""
    copy = sqlite3.connect("", isolation_level=None)
    try:
        other.backup(copy)
        _require_intact(copy)
        copy.execute("BEGIN")
        for table in ("meta", "builds", "ended_builds"):
            _replace_rows(copy, table, own.execute(f"SELECT * FROM {table}").fetchall())
        stale = copy.execute(
            "SELECT path FROM files WHERE hash IS NULL OR outcome IN ('unreadable', 'failed')"
        )
        files.remove_files(copy, [path for (path,) in stale.fetchall()])
        copy.execute(
            "UPDATE files SET mtime_ns = -1, indexed_at_ns = ?", (files.NEVER_COMPARED_NS,)
        )
        copy.execute("COMMIT")
    except BaseException:
        copy.close()
        raise
    return copy


def _require_intact(copy: sqlite3.Connection) -> None:
    """Pages are copied unread; and a fault that is copied would come back with each new build."""
    (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _replace_rows(copy: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    copy.execute(f"DELETE FROM {table}")
    for row in rows:
        copy.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def put_copy(
    copy: sqlite3.Connection, own: sqlite3.Connection, *, may_write: Callable[[], bool]
) -> bool:
    """Give our own file the content of the copy, if `may_write` says so while the write lock is held."""
    (pages,) = copy.execute("PRAGMA page_count").fetchone()
    try:
        copy.backup(own, pages=max(1, pages // STEPS), progress=_guard(may_write))
    except _Refused:
        return False
    return True


class _Refused(Exception):
    """Ends a copy, and so rolls it back."""


def _guard(may_write: Callable[[], bool]) -> Callable[[int, int, int], None]:
    def check(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise sqlite3.OperationalError("database is locked")
        if status == sqlite3.SQLITE_OK and not may_write():
            raise _Refused

    return check
