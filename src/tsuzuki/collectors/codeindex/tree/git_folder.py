"""The folder in which git keeps a checkout, read without git. Its author may be a stranger.

Git holds `index.lock` while it writes files, and replaces `index` when all are written. So an answer that finds
no lock and the same `index` and `HEAD` before and after it read its files saw one tree only.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.collectors.kit.regular_file import read_regular

FILE_BYTES_MAX = 8_192
PACKED_BYTES_MAX = 16 * 2**20
COMMIT_LENGTH = 12
_COMMIT = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")


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


@dataclass(frozen=True)
class GitState:
    """What changes whenever git rewrites files of the tree."""

    locked: bool
    index: tuple[int, ...] = ()
    head: bytes = b""


NO_GIT = GitState(locked=False)


def git_state(folder: Path | None) -> GitState:
    """What git holds now; nothing without a folder of git."""
    if folder is None:
        return NO_GIT
    return GitState(
        locked=(folder / "index.lock").exists(),
        index=_signature(folder / "index"),
        head=start_of(folder / "HEAD"),
    )


def head_commit(root: Path) -> str | None:
    """The commit that is checked out, shortened; None if there is none or git keeps it elsewhere."""
    folder = git_folder_of(root)
    if folder is None:
        return None
    head = file_text(folder / "HEAD")
    label, _, name = head.partition(": ")
    if label != "ref":
        return _shortened(head)
    if not _is_ref(name):
        return None
    # Branches of a worktree are kept with the repository that it belongs to.
    for place in (folder, folder / file_text(folder / "commondir")):
        packed = file_text(place / "packed-refs", PACKED_BYTES_MAX).splitlines()
        for line in (file_text(place / name), *(one for one in packed if one.endswith(f" {name}"))):
            if found := _shortened(line.partition(" ")[0]):
                return found
    return None


def _is_ref(name: str) -> bool:
    return name.startswith("refs/") and ".." not in name and "\0" not in name


def _shortened(commit: str) -> str | None:
    """None for what is not the name of a commit: the file may have been made to lead elsewhere."""
    return commit[:COMMIT_LENGTH] if _COMMIT.fullmatch(commit) else None


def lock_age_seconds(folder: Path, *, now: float) -> float:
    """How old the lock is; 0 if it has gone."""
    try:
        return now - (folder / "index.lock").stat().st_mtime
    except OSError:
        return 0.0


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns)
