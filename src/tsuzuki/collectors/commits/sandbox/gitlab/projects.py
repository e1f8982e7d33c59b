"""The projects of a folder: every repository in it, with a number that its path does not change."""

import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .repository import Repository

DEPTH_MAX = 4
LONELY_NAMESPACE = "sandbox"
"""Where a repository directly in the folder is found: a GitLab has none outside a namespace."""


@dataclass
class GitLabProject:
    """A repository under the path by which clients know it today."""

    number: int
    path: str
    repository: Repository
    archived: bool = False
    former_paths: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        return self.path.rpartition("/")[0]


class Projects:
    """What the folder holds, looked through again whenever something unknown is asked for.

    A number is made from the path under which a repository was found, so a new neighbour or a
    restart changes no id. A rename is ours alone: the folder keeps its name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._projects: dict[int, GitLabProject] = {}
        self._folders: set[Path] = set()
        self.look()

    def look(self) -> None:
        """Take in what is new in the folder, and let go what is gone."""
        with self._lock:
            found = dict(_repositories(self.folder))
            for number, project in list(self._projects.items()):
                if project.repository.folder not in found.values():
                    del self._projects[number]
            self._folders &= set(found.values())
            for path, folder in sorted(found.items()):
                if folder not in self._folders:
                    self._take_in(path, folder)

    def _take_in(self, path: str, folder: Path) -> None:
        number = zlib.crc32(path.encode()) & 0x7FFF_FFFF
        while number in self._projects or number == 0:
            number += 1
        self._projects[number] = GitLabProject(
            number=number, path=path, repository=Repository(folder)
        )
        self._folders.add(folder)

    def all(self) -> list[GitLabProject]:
        self.look()
        with self._lock:
            return list(self._projects.values())

    def find(self, reference: str) -> GitLabProject | None:
        """By number or by path of today."""
        found = self._find(reference)
        if found is None:
            self.look()
            found = self._find(reference)
        return found

    def moved(self, reference: str) -> GitLabProject | None:
        """The project that had this path before."""
        with self._lock:
            return next((p for p in self._projects.values() if reference in p.former_paths), None)

    def rename(self, project: GitLabProject, path: str) -> None:
        with self._lock:
            project.former_paths.add(project.path)
            project.former_paths.discard(path)
            project.path = path

    def _find(self, reference: str) -> GitLabProject | None:
        with self._lock:
            if reference.isdecimal():
                return self._projects.get(int(reference))
            return next((p for p in self._projects.values() if p.path == reference), None)


def _repositories(root: Path) -> Iterator[tuple[str, Path]]:
    """Path and folder of every repository under `root`; one inside another is not looked for."""
    unseen = [(root, 0)]
    while unseen:
        folder, depth = unseen.pop()
        if folder != root and _is_repository(folder):
            path = folder.relative_to(root).with_suffix(
                "" if folder.suffix == ".git" else folder.suffix
            )
            yield str(path) if path.parent.name else f"{LONELY_NAMESPACE}/{path}", folder
        elif depth < DEPTH_MAX:
            unseen.extend((child, depth + 1) for child in _folders(folder))


def _folders(folder: Path) -> Iterator[Path]:
    """Those that may be read; a link only if it leads to a repository, or it might lead anywhere."""
    with suppress(PermissionError):
        for child in folder.iterdir():
            if child.is_dir() and (not child.is_symlink() or _is_repository(child)):
                yield child


def _is_repository(folder: Path) -> bool:
    is_bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    return is_bare or (folder / ".git").exists()
