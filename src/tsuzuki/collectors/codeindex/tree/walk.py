"""A walk through a folder that git cannot list: its files without what its ignore files name.

In a repository `.git/info/exclude` counts too, below the ignore files of the tree, as for git. The rules that only
git's configuration names are not known here.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

from tsuzuki.collectors.codeindex.tree.git_folder import common_folder_of
from tsuzuki.collectors.kit.regular_file import read_regular

IGNORE_FILES = (".gitignore", ".ignore")
IGNORE_BYTES_MAX = 1_000_000
NEVER_ENTERED = frozenset(
    ".git .hg .svn .jj __pycache__ node_modules .venv .tox .nox .mypy_cache .ruff_cache .pytest_cache".split()
)
"""Folders of version control, of installed packages and of caches."""


class _Rules:
    """The ignore rules that hold in one folder: its own and those of the folders above, the nearest first."""

    def __init__(self, folder: str, lines: list[str], above: "_Rules | None") -> None:
        self._prefix = f"{folder}/" if folder else ""
        self._spec = _spec(lines) if lines else None
        self._above = above

    def ignore(self, path: str) -> bool:
        rules: _Rules | None = self
        while rules is not None:
            if rules._spec is not None:  # noqa: SLF001 -- of the same class
                verdict = rules._spec.check_file(path.removeprefix(rules._prefix)).include  # noqa: SLF001 -- of the same class
                if verdict is not None:
                    return verdict
            rules = rules._above  # noqa: SLF001 -- of the same class
        return False


def walk(
    root: Path,
    unread_folders: list[str],
    *,
    top: Path | None = None,
    only: Sequence[str] | None = None,
    entered: list[str] | None = None,
) -> Iterator[str]:
    """Paths of files below the root, relative to it, in order. Folders that cannot be read are added to
    `unread_folders`, the others to `entered`. `top` is the folder above from which on rules count; without it, they
    count from the root on. `only` are files and folders that are asked for."""
    outside, inherited = _rules_above(root, top or root)
    to_enter: list[tuple[str, _Rules | None]] = [("", inherited)]
    while to_enter:
        folder, above = to_enter.pop()
        try:
            with os.scandir(root / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            unread_folders.append(folder)
            continue
        if entered is not None:
            entered.append(folder)
        names = {entry.name for entry in entries}
        rules = _Rules(f"{outside}{folder}".rstrip("/"), _ignore_lines(root / folder, names), above)
        below: list[tuple[str, _Rules | None]] = []
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink() or entry.name in NEVER_ENTERED or not _is_asked(path, only):
                continue
            if entry.is_dir(follow_symlinks=False):
                if not rules.ignore(f"{outside}{path}/"):
                    below.append((path, rules))
            elif not rules.ignore(f"{outside}{path}"):
                yield path
        to_enter.extend(reversed(below))


def _rules_above(root: Path, top: Path) -> tuple[str, _Rules | None]:
    """The way from the top to the root, with a slash at its end, and the rules of the folders on it."""
    rules: _Rules | None = None
    way = ""
    for name in root.relative_to(top).parts:
        lines = _ignore_lines(top / way, {*IGNORE_FILES, ".git"})
        rules = _Rules(way.rstrip("/"), lines, rules)
        way += f"{name}/"
    return way, rules


def _is_asked(path: str, only: Sequence[str] | None) -> bool:
    """Whether a path is one of those, lies below one or leads to one."""
    return only is None or any(
        path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in only
    )


def _ignore_lines(folder: Path, names: set[str]) -> list[str]:
    """The patterns of a folder, those that count most at the end."""
    lines: list[str] = []
    files = [folder / name for name in IGNORE_FILES if name in names]
    if ".git" in names and (common := common_folder_of(folder)):
        files.insert(0, common / "info" / "exclude")
    for file in files:
        try:
            content = read_regular(file, IGNORE_BYTES_MAX)
        except OSError:
            continue
        lines += content.decode("utf-8", "replace").splitlines()
    return lines


def _spec(lines: list[str]) -> GitIgnoreSpec:
    """A line that is no pattern is passed over, as git does."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except GitIgnorePatternError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except GitIgnorePatternError:
        return False
    return True
