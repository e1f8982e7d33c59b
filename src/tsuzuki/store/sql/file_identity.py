"""Whether the path of an SQLite database still names the file that this process has open, and the path of its
write-ahead log the log.

A file that is deleted or replaced (a restore, a `git clean`, a sync client) stays usable for those who have it open:
what they commit is in no file that has a name. The log alone is enough for that: a backup that is copied over the
database keeps its inode, and the old log is deleted. So device and inode of both are compared before and after every
commit. SQLite itself deletes a log only when no connection to the database is open.
"""

import os
from contextlib import suppress
from typing import Any

from tsuzuki.model.errors import DatabaseReplaced

LOG = "tsuzuki_log"
"""In the `info` of a connection: which log it writes to."""


class FileIdentity:
    """Shared by all connections to one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self._opened: tuple[int, int] | None = None
        self._fate: str | None = None

    def note(self) -> None:
        """A connection was opened: the file is known from now on."""
        if self._opened is None:
            with suppress(
                OSError
            ):  # a URI, or a file that we may not look at: it cannot be checked
                self._opened = _identity(self._path)

    def note_log(self, info: dict[Any, Any]) -> None:
        """The connection with this `info` has opened the log. A new database has none before its first transaction."""
        with suppress(OSError):
            info[LOG] = _identity(self._log_path)

    def check(self, info: dict[Any, Any] | None = None) -> None:
        """Raise `DatabaseReplaced` if the path names another file now, or none; and from then on. With the `info` of a
        connection in a transaction also if that is true of its log."""
        if self._opened is None:
            return
        if self._fate is None:
            self._fate = _fate(self._path, self._opened)
        if self._fate is None and info is not None:
            if LOG not in info:
                self.note_log(info)
            if LOG in info:
                self._fate = _fate(self._log_path, info[LOG])
        if (problem := self.problem) is not None:
            raise problem

    @property
    def problem(self) -> DatabaseReplaced | None:
        """Set for good once the file was found to be another one."""
        if self._fate is None:
            return None
        return DatabaseReplaced(
            f"the database file {self._fate} while this process used it; nothing more is written",
            hint="Stop all processes, put the right file in place without the -wal and -shm files of another one, "
            "then start them again.",
        )

    def forget(self) -> None:
        """All connections are closed: the next one may open another file."""
        self._opened = self._fate = None


def _fate(path: str, opened: tuple[int, int]) -> str | None:
    """What happened to the file that was opened under this path; None if nothing that we can see."""
    try:
        return None if _identity(path) == opened else f"{path} was replaced"
    except FileNotFoundError:
        return f"{path} was deleted"
    except OSError:
        return None


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 -- called four times with each commit, and a Path takes twice as long
    return found.st_dev, found.st_ino
