"""The scan: which files a tree has, with size and mtime.

From git where it can tell, else from a walk with ignore rules. Links are not followed. A worktree of a repository that
lies in the tree is left out, because it has the same files again; another repository is part of the tree.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tsuzuki.collectors.codeindex.git import git_paths
from tsuzuki.collectors.codeindex.index_file import printable
from tsuzuki.collectors.codeindex.walk import walk
from tsuzuki.model.errors import NotFound, UsageError

FILES_MAX = 2_000_000
TICK_FILES = 2_000


class ScannedFile(NamedTuple):
    """`problem` says why it cannot be read, if that is known already."""

    path: str
    size: int
    mtime_ns: int
    problem: str | None = None


@dataclass(kw_only=True)
class Scan:
    """What a tree has. Below `unread_folders` it could not be seen what there is."""

    files: list[ScannedFile] = field(default_factory=list)
    unread_folders: list[str] = field(default_factory=list)

    def may_have(self, path: str) -> bool:
        """Whether a file that was not found may be there all the same."""
        return any(folder == "" or path.startswith(f"{folder}/") for folder in self.unread_folders)


def scan_tree(
    root: Path, *, files_max: int = FILES_MAX, on_tick: Callable[[], None] = lambda: None
) -> Scan:
    """Scan a tree. `on_tick` is called every few thousand files, and may raise to end it."""
    scan = Scan()
    top = os.fspath(root)
    for path in _paths(root, scan):
        found = _look(top, path)
        if found is None:
            continue
        scan.files.append(found)
        if len(scan.files) > files_max:
            raise UsageError(
                f"{root} has more than {files_max} files",
                hint="Index a folder below it, or let .gitignore name what is not source.",
                code="tree_too_large",
            )
        if len(scan.files) % TICK_FILES == 0:
            on_tick()
    if not root.is_dir():  # it went meanwhile: that is not a tree without files
        raise NotFound(
            f"there is no folder {root}", hint="It was moved or removed.", code="root_missing"
        )
    return scan


def _paths(root: Path, scan: Scan) -> Iterator[str]:
    """Paths relative to the root, with `/`."""
    listed = git_paths(root)
    if not listed:  # no repository, or git ignores the folder as a whole
        yield from walk(root, scan.unread_folders)
        return
    for path in listed:
        is_repository = path.endswith("/") or _is_submodule(root, path)
        if not is_repository:
            yield path
            continue
        below = root / path
        if is_repository_of_its_own(below):
            inner = Scan()
            name = path.rstrip("/")
            yield from (f"{name}/{deeper}" for deeper in _paths(below, inner))
            scan.unread_folders += [f"{name}/{folder}" for folder in inner.unread_folders]


def _is_submodule(root: Path, path: str) -> bool:
    """A folder is listed only for a submodule. One that was never checked out is empty."""
    try:
        return stat.S_ISDIR(os.lstat(root / path).st_mode)
    except OSError:
        return False


def is_repository_of_its_own(folder: Path) -> bool:
    """A linked worktree has a file `.git` that leads into `worktrees` of its repository: it is not one."""
    link = folder / ".git"
    try:
        git_folder = link.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
    except IsADirectoryError:
        return True
    except OSError:
        return False
    return Path(git_folder).parent.name != "worktrees"


def _look(top: str, path: str) -> ScannedFile | None:
    """None for what is not a plain file, or not there any more."""
    try:
        found = os.lstat(f"{top}/{path}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        return ScannedFile(printable(path), 0, 0, problem.strerror or str(problem))
    if not stat.S_ISREG(found.st_mode):
        return None
    if not _is_utf8(path):
        return ScannedFile(printable(path), 0, 0, "its name is not UTF-8")
    return ScannedFile(path, found.st_size, found.st_mtime_ns)


def _is_utf8(path: str) -> bool:
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
