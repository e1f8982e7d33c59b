"""Whether git is rewriting the tree, or has rewritten it since: an answer must not quote two checkouts at once.

Git holds `index.lock` while it writes files, and replaces `index` when all are written. So an answer that finds
no lock and the same `index` and `HEAD` before and after it read its files saw one tree only.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.collectors.codeindex.tree.git_folder import file_text, git_folder_of, start_of


@dataclass(frozen=True)
class GitState:
    """What changes whenever git rewrites files of the tree."""

    locked: bool
    index: tuple[int, ...] = ()
    head: bytes = b""


NO_GIT = GitState(locked=False)
COMMIT_LENGTH = 12
PACKED_BYTES_MAX = 16 * 2**20
_COMMIT = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")


def git_state(folder: Path | None) -> GitState:
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
