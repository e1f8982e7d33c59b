"""Files that git would read without end: a FIFO or a device in place of a file that it opens.

The author of a tree can put one anywhere git looks: among its own files, in place of rule files, or where its
configuration points.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tsuzuki.collectors.codeindex.tree.git_folder import (
    common_folder_of,
    git_folder_of,
    linked_folder,
    repository_top,
    start_of,
)
from tsuzuki.collectors.kit.git_environment import git_environment

RULE_FILES = (".gitattributes", ".gitignore")
CONFIGURATION_BYTES_MAX = 1 << 20
CONFIGURATION_FILES_MAX = 100
INCLUDE_DEPTH_MAX = 10
"""As git itself."""

PARSE_SECONDS = 5.0
_READ_AT_ONCE = (
    *("HEAD", "commondir", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout"),
    *("objects/info/alternates", "objects/info/http-alternates"),
)


def would_hold_git_up(root: Path) -> bool:
    """Whether git would hang before it did anything about this folder. A repository of another user counts too,
    because git reads its files before it looks at their owner."""
    for folder in (root, *root.parents):
        entry = folder / ".git"
        if (kind := _kind(entry)) is None:
            continue
        found = linked_folder(entry) if stat.S_ISREG(kind) else entry
        return found is None or any(is_endless(found / name) for name in _READ_AT_ONCE)
    return False


def holds_git_up(root: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Whether a git that does not answer about this folder hangs. The search ends early once `is_over`."""
    for path in _read_by_git(root):
        if is_over():
            return False
        if is_endless(path):
            return True
    return False


def is_endless(path: Path) -> bool:
    """Whether reading it may never end. Links are followed, as git does. A socket cannot be opened at all."""
    kind = _kind(path)
    return kind is not None and (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISBLK(kind))


def _kind(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _read_by_git(root: Path) -> Iterator[Path]:
    """Everything git may open to answer about a folder, without the objects and the source files."""
    top = repository_top(root) or root
    folders = {folder for folder in (git_folder_of(root), common_folder_of(root)) if folder}
    for folder in folders:
        for name in ("config", "config.worktree"):
            yield from _files_named_in(folder / name, top)
    for folder in (top, *(place for place in root.parents if place.is_relative_to(top))):
        yield from (folder / name for name in RULE_FILES)
    for folder in folders:
        yield from _files_below(folder)
    for place, below, names in os.walk(root):
        yield from (Path(place, name) for name in RULE_FILES if name in names)
        if ".git" in below:
            below.remove(".git")
            if (inner := Path(place, ".git")) not in folders:
                yield from _files_below(inner)


def _files_below(git_folder: Path) -> Iterator[Path]:
    """The files in which git keeps branches, worktrees and packs. Loose objects are plain files of no interest."""
    for place, below, names in os.walk(git_folder):
        yield from (Path(place, name) for name in names)
        if Path(place).name == "objects":
            below[:] = [name for name in below if name in ("info", "pack")]


def _files_named_in(configuration: Path, top: Path) -> Iterator[Path]:
    """The files that a configuration file makes git read, and those that the files it includes do. A condition of
    an include counts as fulfilled."""
    seen = {configuration}
    to_read = [(configuration, 0)]
    while to_read:
        file, depth = to_read.pop()
        for key, value in _entries(file):
            if key in ("core.excludesfile", "core.attributesfile"):
                yield top / os.path.expanduser(value)  # noqa: PTH111 -- of an unknown user it stays as it is
            elif key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
                included = file.parent / os.path.expanduser(value)  # noqa: PTH111 -- the same
                yield included
                is_new = included not in seen and len(seen) < CONFIGURATION_FILES_MAX
                if is_new and depth < INCLUDE_DEPTH_MAX:
                    seen.add(included)
                    to_read.append((included, depth + 1))


def _entries(configuration: Path) -> list[tuple[str, str]]:
    """The settings of one configuration file, parsed by git but read by us, so that it follows nothing."""
    text = start_of(Path(os.path.realpath(configuration)), CONFIGURATION_BYTES_MAX)
    program = shutil.which("git")
    if not text or program is None:
        return []
    no_repository = {"GIT_DIR": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull}
    try:
        parsed = subprocess.run(  # noqa: S603 -- git with our own arguments, no shell
            [program, "config", "--file", "-", "--no-includes", "--null", "--list"],
            env={**git_environment(os.environ), **no_repository, "GIT_CONFIG_NOSYSTEM": "1"},
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PARSE_SECONDS,
            check=False,  # git obeys what stands before a fault too
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    entries = (os.fsdecode(entry).partition("\n") for entry in parsed.split(b"\0"))
    return [(key, value) for key, _, value in entries if value and "\0" not in value]
