"""What was scanned for a build: the whole tree, or the files and folders in it that are said to have changed."""

import os
import sqlite3
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tsuzuki.collectors.codeindex.queries import files
from tsuzuki.collectors.codeindex.queries.files import KnownFile
from tsuzuki.collectors.codeindex.tree.files import RealFolders
from tsuzuki.collectors.codeindex.tree.git import git_ignores, git_paths
from tsuzuki.collectors.codeindex.tree.git_folder import repository_top
from tsuzuki.collectors.codeindex.tree.scan import Scan, scanned_file
from tsuzuki.collectors.codeindex.tree.walk import walk
from tsuzuki.model.errors import UsageError

PATHS_MAX = 200
"""Of more, a scan of the whole tree is as fast, and it finds what was not told of."""

RULE_FILES = frozenset({".git", ".gitignore", ".gitmodules", ".ignore"})
"""A change of one decides over files that did not change themselves."""


@dataclass(frozen=True, kw_only=True)
class TreePart:
    """`paths` are the files and folders that were looked at, whether they are there or not; None for all."""

    scan: Scan
    paths: tuple[str, ...] | None = None

    def known(self, connection: sqlite3.Connection) -> dict[str, KnownFile]:
        """What the index has of it."""
        if self.paths is None:
            return files.known_files(connection)
        return files.known_below(connection, self.paths)


def scan_part(root: Path, paths: Iterable[str]) -> TreePart | None:
    """Scan only some files and folders, by the same rules as the tree; None if only a scan of the whole tree
    can tell."""
    asked = tuple(sorted(set(paths)))
    if "." in asked or len(asked) > PATHS_MAX or _touches_rules(root, asked):
        return None
    scan = Scan()
    listed = git_paths(root, asked)
    if listed is None and repository_top(root) is not None:
        return None
    if not listed and (listed is None or git_ignores(root)):
        listed = list(walk(root, scan.unread_folders, only=asked))
    folders = RealFolders(str(root))
    for path in listed:
        if not folders.have(path):
            continue
        try:
            found = os.lstat(root / path)
            path.encode()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeEncodeError):  # the scan of the tree says what is wrong with it
            return None
        if stat.S_ISDIR(found.st_mode):  # a repository of its own
            return None
        if stat.S_ISREG(found.st_mode):
            scan.files.append(scanned_file(path, found))
    return TreePart(scan=scan, paths=asked)


def paths_in(root: Path, named: Iterable[str]) -> list[str]:
    """Files and folders as they are named by people, relative to the root; they need not be there any more."""
    paths = []
    for text in named:
        path = os.path.normpath(root / text)
        if not Path(path).is_relative_to(root):
            raise UsageError(
                f"{text!r} is not in {root}",
                hint="Name files and folders of the tree, relative to its root.",
                code="path_outside",
            )
        paths.append(Path(path).relative_to(root).as_posix())
    return paths


def _touches_rules(root: Path, paths: Iterable[str]) -> bool:
    """Whether a path is a file with rules, or lies in a repository inside the tree, which has its own."""
    pure = [PurePosixPath(path) for path in paths]
    if any(path.name in RULE_FILES for path in pure):
        return True
    folders = {folder for path in pure for folder in (path, *path.parents)} - {PurePosixPath()}
    return any(os.path.lexists(root / folder / ".git") for folder in folders)
