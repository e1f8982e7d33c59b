"""Which repository a folder of this machine belongs to, read from its files as git does.

A repository may have several work trees. They share one folder of objects and branches, git's "common dir", so they
are one project.
"""

from pathlib import Path


def top_of(folder: Path) -> Path:
    """The folder that stands for the repository `folder` is in: its main work tree, or itself if it is bare. The folder
    as given if there is no repository."""
    for place in (folder, *folder.parents):
        if _is_git_folder(place) or (place / ".git").exists():
            return _main_work_tree(place)
    return folder


def common_folder(place: Path) -> Path:
    """Where the repository with this work tree, or this bare one, has its objects and branches."""
    git_folder = _git_folder(place)
    return (git_folder / (_line(git_folder / "commondir") or ".")).resolve()


def _main_work_tree(place: Path) -> Path:
    """The main work tree of a linked one, or its bare repository; any other place as it is."""
    if not (_git_folder(place) / "commondir").is_file():
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
    return inside if inside.is_dir() else place


def _is_git_folder(place: Path) -> bool:
    return (place / "HEAD").is_file() and (place / "objects").is_dir()


def _line(path: Path) -> str:
    """The text of a small file of git; empty if there is none."""
    try:
        return path.read_text(errors="surrogateescape").removesuffix("\n")
    except OSError:
        return ""
