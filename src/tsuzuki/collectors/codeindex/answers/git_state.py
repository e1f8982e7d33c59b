"""Whether git is rewriting the tree, or has rewritten it since: an answer must not quote two checkouts at once.

Git holds `index.lock` while it writes files, and replaces `index` when all are written. So an answer that finds
no lock and the same `index` and `HEAD` before and after it read its files saw one tree only.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GitState:
    """What changes whenever git rewrites files of the tree."""

    locked: bool
    index: tuple[int, ...] = ()
    head: bytes = b""


NO_GIT = GitState(locked=False)
COMMIT_LENGTH = 12


def git_folder_of(root: Path) -> Path | None:
    """The folder with `HEAD` and `index` of this checkout; None if `root` is inside none."""
    for folder in (root, *root.parents):
        entry = folder / ".git"
        if entry.is_dir():
            return entry
        if entry.is_file():
            return _linked_folder(entry)
    return None


def _linked_folder(entry: Path) -> Path | None:
    """A worktree's or a submodule's `.git` is a file that names the folder."""
    text = entry.read_text(encoding="utf-8", errors="surrogateescape")
    label, _, folder = text.strip().partition(": ")
    return (entry.parent / folder).resolve() if label == "gitdir" and folder else None


def git_state(folder: Path | None) -> GitState:
    if folder is None:
        return NO_GIT
    return GitState(
        locked=(folder / "index.lock").exists(),
        index=_signature(folder / "index"),
        head=_content(folder / "HEAD"),
    )


def head_commit(root: Path) -> str | None:
    """The commit that is checked out, shortened; None if there is none or git keeps it elsewhere."""
    folder = git_folder_of(root)
    if folder is None:
        return None
    head = _text(folder / "HEAD")
    label, _, name = head.partition(": ")
    if label != "ref":
        return head[:COMMIT_LENGTH] or None
    # Branches of a worktree are kept with the repository that it belongs to.
    for place in (folder, folder / _text(folder / "commondir")):
        packed = _text(place / "packed-refs").splitlines()
        for line in (_text(place / name), *(one for one in packed if one.endswith(f" {name}"))):
            if line:
                return line[:COMMIT_LENGTH]
    return None


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


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _text(path: Path) -> str:
    return _content(path).decode("utf-8", "surrogateescape").strip()
