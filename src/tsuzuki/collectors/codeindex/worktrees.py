"""A new worktree starts from the index of another worktree of its repository.

Only rows are copied, in one transaction that checks the writer's token. The build that follows reads every file and
keeps what was copied for it only if its content has the stored hash, so no content ever gets another's symbols.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tsuzuki.collectors.codeindex.git import git_top, git_worktrees
from tsuzuki.collectors.codeindex.index_file import IndexFile, NewerIndex, index_path
from tsuzuki.collectors.codeindex.queries import copies, meta
from tsuzuki.model.errors import Conflict, Fenced, Unreachable


def copy_from_worktree(
    index: IndexFile, root: Path, is_ours: Callable[[sqlite3.Connection], bool]
) -> bool:
    """Fill an empty index from the newest one that another worktree has; whether that was done. An index that
    cannot be read is passed over."""
    with index.reading():
        if not copies.is_empty(index.connection):
            return False
    return any(_copied(index, other, is_ours) for other in _other_indexes(root, index.path.parent))


def _other_indexes(root: Path, folder: Path) -> list[Path]:
    """The completed indexes of the same folder in other worktrees, the newest first."""
    top = git_top(root)
    if top is None or not root.is_relative_to(top):
        return []
    below = root.relative_to(top)
    found = []
    for worktree in git_worktrees(root):
        path = index_path(worktree / below, folder)
        if worktree != top and path.exists():
            with suppress(Unreachable, Conflict, NewerIndex), IndexFile.open_path(path) as other:
                with other.reading():
                    stats = meta.index_stats(other.connection)
                if stats is not None:
                    found.append((stats.last_indexed_at, path))
    return [path for _, path in sorted(found, reverse=True)]


def _copied(index: IndexFile, other: Path, is_ours: Callable[[sqlite3.Connection], bool]) -> bool:
    try:
        with index.reading():
            copies.attach(index.connection, other)
        try:
            with index.transaction(is_ours) as connection:
                copies.copy_rows(connection)
        finally:
            with suppress(sqlite3.Error):
                copies.detach(index.connection)
    except Fenced:
        raise
    except (Unreachable, Conflict, sqlite3.IntegrityError):
        # Of the other file or of ours: if it was ours, the build meets it again.
        return False
    return True
