"""Which tree a question is about: the one asked for, else that of the program, the environment, the current folder."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tsuzuki.collectors.codeindex.index_file import index_folder, index_path
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.tree.git import git_top
from tsuzuki.collectors.codeindex.tree.roots import ROOT_VARIABLE, real_path, usable_root
from tsuzuki.model.errors import TsuzukiError

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.watch.live_tree import LiveTree

PROJECT_VARIABLES = (ROOT_VARIABLE, "CLAUDE_PROJECT_DIR")
"""Each names the root; the first one counts."""


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A tree, and the folder or file of it that is meant; empty for all of it."""

    root: Path
    scope: str = ""


class Trees:
    """Finds trees. `root` is what the program was told, if it was; `is_confined` if it may show nothing around it."""

    def __init__(
        self, *, root: str | None, cwd: Path, environ: Mapping[str, str], is_confined: bool = False
    ) -> None:
        self._root = root
        self._is_confined = is_confined
        self._cwd = cwd
        self._environ = environ
        self._folder = index_folder(environ)

    def find(self, named: str | None) -> Tree:
        """The tree that a path lies in, or the one of this program. A relative path starts at its root."""
        if named is None:
            return self.default()
        place = real_path(self._base() / Path(named).expanduser())
        folder = place if place.is_dir() else place.parent
        if not place.exists() or not (outside := self._tree_around(folder)):
            return Tree(root=usable_root(place))
        return _tree(outside, place)

    def default(self) -> Tree:
        """A folder inside a tree that is indexed is a part of that tree."""
        told = [self._root, *(self._environ.get(name) for name in PROJECT_VARIABLES)]
        for text in told:
            if text:
                folder = usable_root(self._cwd / Path(text).expanduser())
                return _tree(self._indexed_around(folder) or folder, folder)
        return Tree(root=usable_root(git_top(self._cwd) or self._cwd))

    def answers(self, tree: Tree, *, live: "LiveTree | None" = None) -> CodeAnswers:
        """Asks about a tree. Paths in questions are relative to the root, or to the folder that is meant. `live` is
        what a watcher of this process knows of it."""
        inside = tree.root / tree.scope
        cwd = inside if inside.is_dir() else tree.root
        return CodeAnswers(
            tree.root,
            cwd=cwd,
            folder=self._folder,
            scope=tree.scope,
            is_confined=self._is_confined,
            live=live,
        )

    def is_indexed(self, root: Path) -> bool:
        """Whether a build of the tree was started at any time."""
        return index_path(root, self._folder).exists()

    def _base(self) -> Path:
        with suppress(TsuzukiError):
            return self.default().root
        return self._cwd

    def _tree_around(self, folder: Path) -> Path | None:
        """The nearest folder that is indexed, is a repository, or is the root of this program."""
        base = self._base()
        for place in (folder, *folder.parents):
            if place == base or self.is_indexed(place) or (place / ".git").exists():
                # Some people keep their home folder in git: that is no tree.
                return place if _is_usable(place) else None
        return None

    def _indexed_around(self, folder: Path) -> Path | None:
        """The indexed tree that a folder is a part of. One around another repository is not."""
        for place in (folder, *(() if self._is_confined else folder.parents)):
            if self.is_indexed(place):
                return place
            if (place / ".git").exists():
                return None
        return None


def _is_usable(folder: Path) -> bool:
    try:
        usable_root(folder)
    except TsuzukiError:
        return False
    return True


def _tree(root: Path, place: Path) -> Tree:
    scope = place.relative_to(root).as_posix()
    return Tree(root=root, scope="" if scope == "." else scope)
