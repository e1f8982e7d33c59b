"""Which folder is the root of a tree: what was asked for, else the repository around the current folder."""

import os
from collections.abc import Mapping
from pathlib import Path

from tsuzuki.collectors.codeindex.tree.git import git_top
from tsuzuki.model.errors import NotFound, NotPermitted, UsageError
from tsuzuki.model.suggestion import did_you_mean

ROOT_VARIABLE = "TSUZUKI_CODEINDEX_ROOT"
NEIGHBOURS_MAX = 500


def find_root(
    named: str | None, *, cwd: Path = Path(), environ: Mapping[str, str] = os.environ
) -> Path:
    """The real path of the root, usable. Raises an error that says what is wrong with it."""
    asked = named or environ.get(ROOT_VARIABLE)
    if asked:
        return usable_root(cwd / Path(asked).expanduser())
    folder = cwd.absolute()
    return usable_root(git_top(folder) or folder)


def usable_root(folder: Path) -> Path:
    """The real path of a folder that can be indexed."""
    real = real_path(folder)
    if not real.exists():
        guess = did_you_mean(real.name, _neighbours(real.parent)).strip()
        raise NotFound(
            f"folder {real} does not exist",
            hint=guess or "Name the folder to index, or run the command inside it.",
            code="root_missing",
        )
    if not real.is_dir():
        raise UsageError(
            f"{real} is a file, not a folder",
            hint=f"Index the folder that contains it: {real.parent}",
            code="root_not_folder",
        )
    _refuse_home(real)
    if not os.access(real, os.R_OK | os.X_OK):
        raise NotPermitted(
            f"cannot read the folder {real}",
            hint="Change its permissions, or use a user who can read it.",
            code="root_unreadable",
        )
    return real


def real_path(folder: Path) -> Path:
    """The path without links. The folder need not exist."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError, ValueError) as problem:  # a loop of links, a NUL
        raise UsageError(f"cannot resolve {folder}: {problem}", code="root_not_folder") from None


def _refuse_home(real: Path) -> None:
    """Home, and what it lies in, hold everything a person has: that is never meant."""
    home = Path(os.path.realpath(Path.home()))
    if real == Path(real.anchor) or real == home or real in home.parents:
        raise UsageError(
            f"{real} is not indexed because it is "
            f"{'the home folder' if real == home else 'above the home folder'}",
            hint="Name the folder of one project, such as ~/src/project.",
            code="root_refused",
        )


def _neighbours(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(NEIGHBOURS_MAX), strict=False)]
    except OSError:
        return []
