"""The folder in which git keeps a checkout, read without git. Its author may be a stranger."""

import os
import re
import stat
from pathlib import Path

from tsuzuki.collectors.codeindex.tree_files import read_regular

FILE_BYTES_MAX = 8_192
CONFIGURATION_BYTES_MAX = 1 << 20
RULE_FILE = ".gitignore"
_NAMES_FILES = re.compile(rb"(?i)\[\s*include|excludesfile|attributesfile")
_READ_BY_GIT = (
    *("HEAD", "commondir", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout"),
    *("objects/info/alternates", "objects/info/http-alternates"),
)


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
            return _linked_folder(entry)
    return None


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def _linked_folder(entry: Path) -> Path | None:
    """A worktree's or a submodule's `.git` is a file that names the folder."""
    label, _, folder = file_text(entry).partition(": ")
    return (entry.parent / folder).resolve() if label == "gitdir" and folder else None


def would_hold_git_up(root: Path) -> bool:
    """Whether git, asked about this folder, would read something without end: a FIFO or a device in place of a file.
    What others own counts too, because git reads it before it looks at the owner."""
    for folder in (root, *root.parents):
        entry = folder / ".git"
        if (kind := _kind(entry)) is None:
            continue
        found = _linked_folder(entry) if stat.S_ISREG(kind) else entry
        return found is None or any(_is_endless(found / name) for name in _READ_BY_GIT)
    return False


def holds_git_up(root: Path) -> bool:
    """Whether a git that does not answer about this folder waits for something without end: a rule file below it, or
    a file that its configuration names."""
    folder = git_folder_of(root)
    common = common_folder_of(root)
    for configuration in (folder and folder / "config.worktree", common and common / "config"):
        if configuration and _NAMES_FILES.search(start_of(configuration, CONFIGURATION_BYTES_MAX)):
            return True
    return any(
        RULE_FILE in names and _is_endless(Path(place) / RULE_FILE)
        for place, _, names in os.walk(root)
    )


def common_folder_of(root: Path) -> Path | None:
    """The folder that all working trees of the repository share; None if `root` is inside none."""
    folder = git_folder_of(root)
    if folder is None:
        return None
    return (folder / file_text(folder / "commondir")).resolve()


def _is_endless(path: Path) -> bool:
    kind = _kind(path)
    return kind is not None and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


def _kind(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def start_of(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """The first bytes of a regular file; none if there is no such file."""
    try:
        return read_regular(path, bytes_max)
    except OSError:
        return b""


def file_text(path: Path, bytes_max: int = FILE_BYTES_MAX) -> str:
    return start_of(path, bytes_max).decode("utf-8", "surrogateescape").strip()
