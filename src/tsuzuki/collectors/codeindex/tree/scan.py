"""The scan: which files a tree has, with size and mtime.

From git where it can tell, else from a walk with ignore rules. A walk through a repository about which git does not
answer misses rules that only git's configuration names, so that repository is noted as unlisted. Links are not
followed. A worktree of a repository that lies in the tree is left out, because it has the same files again; another
repository is part of the tree.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tsuzuki.collectors.codeindex.index_file import printable
from tsuzuki.collectors.codeindex.tree.files import RealFolders
from tsuzuki.collectors.codeindex.tree.git import GitListing, git_ignores, git_paths
from tsuzuki.collectors.codeindex.tree.git_folder import repository_top
from tsuzuki.collectors.codeindex.tree.walk import walk
from tsuzuki.collectors.kit.regular_file import read_regular
from tsuzuki.model.errors import NotFound, UsageError

FILES_MAX = 2_000_000
TICK_FILES = 2_000
LINK_BYTES_MAX = 8_192
"""Of a file `.git`, which names a folder."""


class ScannedFile(NamedTuple):
    """`problem` says why it cannot be read, if that is known already."""

    path: str
    size: int
    mtime_ns: int
    problem: str | None = None
    ctime_ns: int = 0
    links: int = 1


@dataclass(kw_only=True)
class Scan:
    """What a tree has. Below `unread_folders` it could not be seen what there is."""

    files: list[ScannedFile] = field(default_factory=list)
    unread_folders: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    """Folders in the tree that are repositories of their own."""

    listed: list[str] = field(default_factory=list)
    """What git lists at the top, without what repositories inside have; empty where it cannot tell."""

    unlisted_folders: list[str] = field(default_factory=list)
    """Repositories whose files git did not list; the root is the empty path. What was found there by a walk may have
    files that git ignores."""

    def may_have(self, path: str) -> bool:
        """Whether a file that was not found may be there all the same."""
        return is_below(path, self.unread_folders)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path lies in one of some folders. All paths lie in the root, which is the empty one."""
    return any(folder == "" or path.startswith(f"{folder}/") for folder in folders)


def scan_tree(
    root: Path,
    *,
    files_max: int = FILES_MAX,
    on_tick: Callable[[], None] = lambda: None,
    listing: GitListing | None = None,
) -> Scan:
    """Scan a tree. `on_tick` is called every few thousand files, and may raise to end it. `listing` is one of the root
    that was started a moment ago."""
    listed = listing.paths() if listing else git_paths(root)
    scan = Scan(listed=listed or [])
    for found in _found_files(root, "", scan, listed):
        scan.files.append(found)
        if len(scan.files) > files_max:
            raise UsageError(
                f"{root} has more than {files_max} files",
                hint="Index a subfolder, or exclude non-source files with .gitignore.",
                code="tree_too_large",
            )
        if len(scan.files) % TICK_FILES == 0:
            on_tick()
    if not root.is_dir():  # it went meanwhile: that is not a tree without files
        raise NotFound(
            f"folder {root} does not exist", hint="It was moved or deleted.", code="root_missing"
        )
    return scan


def _found_files(
    folder: Path, prefix: str, scan: Scan, listed: list[str] | None
) -> Iterator[ScannedFile]:
    """The files of a folder, which is at `prefix` below the root. One look at each: most scans find no change."""
    top = os.fspath(folder)
    unread_folders: list[str] = []
    folders = RealFolders(top)
    if listed is None and repository_top(folder):
        scan.unlisted_folders.append(prefix.rstrip("/"))
    for path in _paths(folder, listed, unread_folders):
        name = path.rstrip("/")
        if not folders.have(
            name
        ):  # Git goes on listing what was below a folder that a link has replaced.
            continue
        try:
            status = os.lstat(f"{top}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            yield ScannedFile(printable(prefix + path), 0, 0, problem.strerror or str(problem))
            continue
        if stat.S_ISREG(status.st_mode):
            yield scanned_file(prefix + path, status)
        elif stat.S_ISDIR(status.st_mode) and is_repository_of_its_own(folder / name):
            # A folder is listed only for a repository in it. A submodule that was never checked out is empty.
            scan.repositories.append(f"{prefix}{name}")
            below = git_paths(folder / name)
            yield from _found_files(folder / name, f"{prefix}{name}/", scan, below)
    scan.unread_folders += [f"{prefix}{below}" for below in unread_folders]


def _paths(folder: Path, listed: list[str] | None, unread_folders: list[str]) -> Iterable[str]:
    """The paths that git listed; where it could not, and in a folder that it ignores as a whole, those of a walk."""
    if listed is None:
        return walk(folder, unread_folders, top=repository_top(folder))
    if not listed and git_ignores(folder):
        return walk(folder, unread_folders)
    return listed


def is_repository_of_its_own(folder: Path) -> bool:
    """A linked worktree has a file `.git` that leads into `worktrees` of its repository: it is not one."""
    link = folder / ".git"
    try:
        is_folder = stat.S_ISDIR(link.lstat().st_mode)
        text = "" if is_folder else read_regular(link, LINK_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return False
    return is_folder or Path(text.removeprefix("gitdir:").strip()).parent.name != "worktrees"


def scanned_file(path: str, status: os.stat_result) -> ScannedFile:
    if not _is_utf8(path):
        return ScannedFile(printable(path), 0, 0, "its name is not UTF-8")
    return ScannedFile(
        path, status.st_size, status.st_mtime_ns, None, status.st_ctime_ns, status.st_nlink
    )


def _is_utf8(path: str) -> bool:
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
