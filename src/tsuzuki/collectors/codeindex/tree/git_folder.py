"""The folder in which git keeps a checkout, read without git. Its author may be a stranger."""

import os
import stat
from pathlib import Path

from tsuzuki.collectors.kit.regular_file import read_regular

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
    """A worktree's or a submodule's `.git` is a file that names the folder. None if it names none that exists."""
    label, _, named = file_text(entry).partition(": ")
    folder = _real(entry.parent / named)
    return folder if label == "gitdir" and named and _is_folder(folder) else None


def common_folder_of(root: Path) -> Path | None:
    """The folder that all working trees of the repository share; None if `root` is inside none."""
    folder = git_folder_of(root)
    if folder is None:
        return None
    return _real(folder / file_text(folder / "commondir"))


def start_of(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """The first bytes of a regular file; none if there is no such file."""
    try:
        return read_regular(path, bytes_max)
    except OSError:
        return b""


def file_text(path: Path, bytes_max: int = FILE_BYTES_MAX) -> str:
    """The text of a small regular file, up to a NUL as git reads it; empty if there is none."""
    content, _, _ = start_of(path, bytes_max).partition(b"\0")
    return content.decode("utf-8", "surrogateescape").strip()


def _real(path: Path) -> Path:
    """Without links, as far as there are none that lead in a circle."""
    return Path(os.path.realpath(path))


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:  # its name may be too long to exist
        return False
