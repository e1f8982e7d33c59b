"""Whether the path of an SQLite database still names the file that this process has open.

A file that is deleted or replaced (a restore, a `git clean`, a sync client) stays usable for those who have it open:
what they commit is in no file that has a name. So device and inode are compared before and after every commit.
"""

import os
from contextlib import suppress

from tsuzuki.model.errors import DatabaseReplaced


class FileIdentity:
    """Shared by all connections to one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened: tuple[int, int] | None = None
        self._fate: str | None = None

    def note(self) -> None:
        """A connection was opened: the file is known from now on."""
        if self._opened is None:
            with suppress(
                OSError
            ):  # a URI, or a file that we may not look at: it cannot be checked
                self._opened = _identity(self._path)

    def check(self) -> None:
        """Raise `DatabaseReplaced` if the path names another file now, or none; and from then on."""
        if self._opened is None:
            return
        try:
            if self._fate is None and _identity(self._path) != self._opened:
                self._fate = "replaced"
        except FileNotFoundError:
            self._fate = "deleted"
        except OSError:
            return
        if (problem := self.problem) is not None:
            raise problem

    @property
    def problem(self) -> DatabaseReplaced | None:
        """Set for good once the file was found to be another one."""
        if self._fate is None:
            return None
        return DatabaseReplaced(
            f"the database file {self._path} was {self._fate} while this process used it; nothing more is written",
            hint="Stop all processes, put the right file in place without the -wal and -shm files of another one, "
            "then start them again.",
        )

    def forget(self) -> None:
        """All connections are closed: the next one may open another file."""
        self._opened = self._fate = None


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 -- called twice with each commit, and a Path takes twice as long
    return found.st_dev, found.st_ino
