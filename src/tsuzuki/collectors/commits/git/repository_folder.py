"""Which repository a folder of this machine belongs to, read from its files as git does.

A repository may have several work trees. They share one folder of objects and branches, git's "common dir", so they
are one project. The repository may come from a stranger: its files may be endless, or name paths that cannot exist.
"""

import os
import stat
from pathlib import Path

from tsuzuki.collectors.kit.regular_file import read_regular

LINE_BYTES_MAX = 8_192


def top_of(folder: Path) -> Path:
    """The folder that stands for the repository `folder` is in: its main work tree, or itself if it is bare. The folder
    as given if there is no repository."""
    for place in (folder, *folder.parents):
        if _is_git_folder(place) or _kind(place / ".git") is not None:
            return _main_work_tree(place)
    return folder


def common_folder(place: Path) -> Path:
    """Where the repository with this work tree, or this bare one, has its objects and branches."""
    git_folder = _git_folder(place)
    return Path(os.path.realpath(git_folder / (_line(git_folder / "commondir") or ".")))


def _main_work_tree(place: Path) -> Path:
    """The main work tree of a linked one, or its bare repository; any other place as it is."""
    if not _line(_git_folder(place) / "commondir"):
        return place
    common = common_folder(place)
    main = common.parent if common.name == ".git" else common
    return main if common_folder(main) == common and _is_git_folder(common) else place


def _git_folder(place: Path) -> Path:
    """The folder `.git`, or where the file of that name leads."""
    inside = place / ".git"
    leads_to = _line(inside).removeprefix("gitdir: ")
    if leads_to:
        return place / leads_to
    return inside if _kind(inside) == stat.S_IFDIR else place


def _is_git_folder(place: Path) -> bool:
    return _kind(place / "HEAD") == stat.S_IFREG and _kind(place / "objects") == stat.S_IFDIR


def _kind(path: Path) -> int | None:
    """Whether it is a folder, a regular file or something else; None if there is none."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except OSError:  # its name may be too long to exist
        return None


def _line(path: Path) -> str:
    """The text of a small regular file of git, up to a NUL as git reads it; empty if there is none."""
    try:
        content, _, _ = read_regular(path, LINE_BYTES_MAX).partition(b"\0")
    except OSError:
        return ""
    return os.fsdecode(content).removesuffix("\n")
