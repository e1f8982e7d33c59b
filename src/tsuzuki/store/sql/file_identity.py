"""Whether the path of an SQLite database still names the file that this process has open, and the paths beside it the
write-ahead log and the memory that it shares with other processes.

A file that is deleted or replaced (a restore, a `git clean`, a sync client) stays usable for those who have it open:
what they commit is in no file that has a name. The log alone is enough for that: a backup that is copied over the
database keeps its inode, and the old log is deleted. Without the shared memory two processes overwrite each other's
commits in the log. So device and inode of all three are compared before and after every commit. SQLite itself deletes
log and memory only when no connection to the database is open.
"""

import os
from contextlib import suppress
from typing import Any

from tsuzuki.model.errors import DatabaseReplaced

BESIDE = "tsuzuki_files_beside"
"""In the `info` of a connection: log and shared memory as it has opened them, by path."""

SUFFIXES = ("-wal", "-shm")


class FileIdentity:
    """Shared by all connections to one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened: tuple[int, int] | None = None
        self._fate: tuple[str, str] | None = None
        """The path whose file is another one now, and what happened to it."""

    def note(self) -> None:
        """A connection was opened: the file is known from now on."""
        if self._opened is None:
            with suppress(OSError):  # a URI, or a file that we may not look at cannot be checked
                self._opened = _identity(self._path)

    def note_beside(self, info: dict[Any, Any]) -> None:
        """The connection with this `info` has opened the files beside the database. A new one has none before its
        first transaction."""
        # SQLite makes them beside the file, not beside a link to it.
        file = os.path.realpath(self._path)
        with suppress(OSError):
            info[BESIDE] = {f"{file}{suffix}": _identity(f"{file}{suffix}") for suffix in SUFFIXES}

    def check(self, info: dict[Any, Any] | None = None) -> None:
        """Raise `DatabaseReplaced` if the path names another file now, or none; and from then on. With the `info` of a
        connection in a transaction also if that is true of a file beside it."""
        if self._opened is None:
            return
        if self._fate is None:
            self._fate = _fate(self._path, self._opened)
        if self._fate is None and info is not None:
            if BESIDE not in info:
                self.note_beside(info)
            for path, opened in info.get(BESIDE, {}).items():
                self._fate = self._fate or _fate(path, opened)
        if (problem := self.problem) is not None:
            raise problem

    @property
    def problem(self) -> DatabaseReplaced | None:
        """Set for good once the file was found to be another one."""
        if self._fate is None:
            return None
        path, fate = self._fate
        return DatabaseReplaced(
            f"the database file {path} was {fate} while this process used it; the process "
            "writes nothing more",
            hint="Stop all processes, put the correct file in place without another file's -wal and "
            "-shm, and start them again.",
        )

    def forget(self) -> None:
        """All connections are closed: the next one may open another file."""
        self._opened = self._fate = None


def _fate(path: str, opened: tuple[int, int]) -> tuple[str, str] | None:
    """The path, and what happened to the file that was opened under it; None if nothing that we can see."""
    try:
        return None if _identity(path) == opened else (path, "replaced")
    except FileNotFoundError:
        return path, "deleted"
    except OSError:
        return None


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 -- called six times with each commit, and a Path takes twice as long
    return found.st_dev, found.st_ino
