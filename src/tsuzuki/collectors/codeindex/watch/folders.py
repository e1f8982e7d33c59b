"""The folders of a tree in which a file may come, change or go. Ignored ones, links and linked worktrees are left out:
neither is indexed, and they may have more folders than the system can watch."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tsuzuki.collectors.codeindex.git import git_ignored_paths
from tsuzuki.collectors.codeindex.scan import is_repository_of_its_own
from tsuzuki.collectors.codeindex.walk import walk

IGNORED_AS_A_WHOLE = "./"


def watched_folders(root: Path, only: Sequence[str] | None = None) -> set[str]:
    """Relative to the root, which is the empty path. `only` are folders: they and what lies below them."""
    ignored = git_ignored_paths(root, only or (".",))
    if ignored is None or IGNORED_AS_A_WHOLE in ignored:
        entered: list[str] = []
        for _path in walk(root, [], only=only, entered=entered):
            pass
        return {folder for folder in entered if _is_below(folder, only)}
    starts = [""] if only is None else [folder for folder in only if f"{folder}/" not in ignored]
    return {folder for start in starts for folder in _entered(root, start, {*ignored})}


def _is_below(folder: str, only: Sequence[str] | None) -> bool:
    return only is None or any(folder == one or folder.startswith(f"{one}/") for one in only)


def _entered(root: Path, start: str, ignored: set[str]) -> Iterator[str]:
    """A folder and those below it."""
    to_enter = [start]
    while to_enter:
        folder = to_enter.pop()
        try:
            with os.scandir(root / folder) as entries:
                below = [one for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield folder
        for entry in below:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name == ".git" or f"{path}/" in ignored:
                continue
            if not os.path.lexists(root / path / ".git"):
                to_enter.append(path)
            elif is_repository_of_its_own(root / path):
                yield from (f"{path}/{one}".rstrip("/") for one in watched_folders(root / path))
