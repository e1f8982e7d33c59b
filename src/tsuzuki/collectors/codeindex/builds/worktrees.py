"""A new worktree starts from the index of another worktree of its repository.

Its content is copied in one transaction that checks the writer's token. The build that follows reads every file and
keeps what was copied for it only if its content has the stored hash, so no content ever gets another's symbols.
"""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path

from tsuzuki.collectors.codeindex.index_file import IndexFile, NewerIndex, index_path
from tsuzuki.collectors.codeindex.queries import copies, meta
from tsuzuki.collectors.codeindex.tree.git import git_top, git_worktrees
from tsuzuki.model.errors import Conflict, Fenced, Unreachable


def other_indexes(root: Path, folder: Path) -> list[Path]:
    """The completed indexes of the same folder in other worktrees, the newest first. One that cannot be read is
    passed over."""
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
                    is_listed = not meta.unlisted_folders(other.connection)
                if stats is not None and is_listed:
                    found.append((stats.last_indexed_at, path))
    return [path for _, path in sorted(found, reverse=True)]


def copy_from_worktree(
    index: IndexFile, others: Iterable[Path], is_ours: Callable[[sqlite3.Connection], bool]
) -> bool:
    """Fill an empty index from the first of the others that can be read; whether that was done."""
    with index.reading():
        if not copies.is_empty(index.connection):
            return False
    return any(_is_copied(index, other, is_ours) for other in others)


def _is_copied(index: IndexFile, path: Path, is_ours: Callable[[sqlite3.Connection], bool]) -> bool:
    try:
        with IndexFile.open_path(path) as other, other.reading():
            copy = copies.prepared_copy(other.connection, index.connection)
        # Our own connection cannot be asked while it is written to.
        with closing(copy), IndexFile.open_path(index.path) as asked, index.reading():
            is_done = copies.put_copy(
                copy, index.connection, may_write=lambda: is_ours(asked.connection)
            )
    except (Unreachable, Conflict, NewerIndex, sqlite3.IntegrityError):
        # Of the other file or of ours: if it was ours, the build meets it again.
        return False
    if not is_done:
        raise Fenced(f"another process now writes {index.path}")
    return True
