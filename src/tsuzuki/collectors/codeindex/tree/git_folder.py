"""The folder in which git keeps a checkout, read without git. Its author may be a stranger."""

import os
from pathlib import Path

from tsuzuki.collectors.codeindex.tree.files import read_regular

FILE_BYTES_MAX = 8_192


def git_folder_of(root: Path) -> Path | None:
    """The folder with `HEAD` and `index` of this checkout; None if `root` is inside none. What belongs neither to us
    nor to the owner of `root` is passed over: everybody may put a `.git` into `/tmp`."""
    owners = {os.geteuid(), _owner(root)}
    for folder in (root, *root.parents):
        entry = folder / ".git"
        if _owner(entry) not in owners:
            continue
        if entry.is_dir():
            return entry
        if entry.is_file():
            return linked_folder(entry)
    return None


def repository_top(root: Path) -> Path | None:
    """The nearest folder with a `.git` that is ours or the owner's of `root`, whether git can use it or not."""
    owners = {os.geteuid(), _owner(root)}
    return next(
        (folder for folder in (root, *root.parents) if _owner(folder / ".git") in owners), None
    )


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def linked_folder(entry: Path) -> Path | None:
    """A worktree's or a submodule's `.git` is a file that names the folder."""
    label, _, folder = file_text(entry).partition(": ")
    return (entry.parent / folder).resolve() if label == "gitdir" and folder else None


def common_folder_of(root: Path) -> Path | None:
    """The folder that all working trees of the repository share; None if `root` is inside none."""
    folder = git_folder_of(root)
    if folder is None:
        return None
    return (folder / file_text(folder / "commondir")).resolve()


def start_of(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """The first bytes of a regular file; none if there is no such file."""
    try:
        return read_regular(path, bytes_max)
    except OSError:
        return b""


def file_text(path: Path, bytes_max: int = FILE_BYTES_MAX) -> str:
    return start_of(path, bytes_max).decode("utf-8", "surrogateescape").strip()
