"""A bare view of a repository: its objects, and nothing else that could change what git says of them.

Neither the repository's configuration and attributes nor those of the user or the machine are seen, so a
commit has the same counts in a folder, in a mirror and on a server.

A view is a folder that its process holds a lock in. One that a killed process has left is removed by the
next process that makes a view.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PREFIX = "tsuzuki-view-"
_LOCK = "lock"


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """Where a repository has its objects, and by which hash they are named."""

    folder: str
    object_format: str


@contextmanager
def bare_view(objects: ObjectStore) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder of the view, and what a git that looks through it has in its environment."""
    remove_left_views(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, _locked(Path(name)):
        view = Path(name)
        (view / "refs").mkdir()
        (view / "HEAD").write_text("ref: refs/heads/none\n")
        (view / "config").write_text(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
            f"[extensions]\n\tobjectformat = {objects.object_format}\n"
        )
        yield (
            view,
            {
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_DIR": name,
                "GIT_OBJECT_DIRECTORY": objects.folder,
                "HOME": name,
                "XDG_CONFIG_HOME": name,
            },
        )


@contextmanager
def _locked(view: Path) -> Iterator[None]:
    """Hold the lock of a view. It gets its name once it is locked, so no other process finds it free."""
    with (view / "unnamed").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (view / "unnamed").rename(view / _LOCK)
        yield


@cache
def remove_left_views(folder: str) -> None:
    """Remove the views that killed processes have left; looked for once by each process."""
    for view in Path(folder).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or another process removes it
            if view.lstat().st_uid == os.geteuid() and _is_left(view):
                shutil.rmtree(view)


def _is_left(view: Path) -> bool:
    """Whether no process holds its lock. One without a lock may be another version's, and stays."""
    with (view / _LOCK).open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
