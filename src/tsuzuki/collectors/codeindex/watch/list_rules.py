"""The files outside of the watched folders that decide which files of a tree git lists."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.collectors.codeindex.tree.doubt import is_in_doubt
from tsuzuki.collectors.codeindex.tree.git_folder import file_text, git_folder_of

_OF_CHECKOUT = ("index", "config.worktree")
_OF_REPOSITORY = ("config", "info/exclude")


@dataclass(frozen=True)
class RuleFiles:
    """The files with their signatures: inode, size, times of content and of the inode; empty for one that is not
    there."""

    signatures: tuple[tuple[str, tuple[int, ...]], ...]

    def are_unchanged(self) -> bool:
        return all(_signature(path) == signature for path, signature in self.signatures)

    def changed_since(self, moment_ns: int) -> bool:
        """Whether one may have been written at that moment or later."""
        return any(
            is_in_doubt(signature[2], signature[3], read_at_ns=moment_ns)
            for _, signature in self.signatures
            if signature
        )


def rule_files(root: Path, repositories: Sequence[str]) -> RuleFiles:
    """Those of a tree with some repositories inside. Ignore files in watched folders are left to notifications."""
    paths = {*_of_user(), *_above(root)}
    for folder in (root, *(root / one for one in repositories)):
        paths |= _of_git(folder)
    return RuleFiles(tuple((path, _signature(path)) for path in sorted(paths)))


def _of_user() -> set[str]:
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    found = (home / ".gitconfig", config / "config", config / "ignore", Path("/etc/gitconfig"))
    return {os.fspath(path) for path in found}


def _above(root: Path) -> set[str]:
    """The ignore files between the top of the repository and the root, which lies in it; and where a repository
    around the root would be, if it came."""
    found: set[str] = set()
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            break
        found |= {os.fspath(folder / ".git"), os.fspath(folder.parent / ".gitignore")}
    return found


def _of_git(folder: Path) -> set[str]:
    git_folder = git_folder_of(folder)
    if git_folder is None:
        return set()
    common = git_folder / file_text(git_folder / "commondir")
    return {os.fspath(git_folder / name) for name in _OF_CHECKOUT} | {
        os.fspath(common / name) for name in _OF_REPOSITORY
    }


def _signature(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)  # noqa: PTH116 -- as every other stat of a tree
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
