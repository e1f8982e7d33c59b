"""Completing one branch: the details of commits that were stored without them.

What is missing is walked from the head the branch is complete up to, or from a complete head of another branch
of the project, to the head it is stored up to. Each page is one transaction with the mark of the next, so a
crash costs at most a page. Commits that the branch no longer has (after a force push) and that no other
branch has stay without details. A branch that is complete costs no request. If the pages left commits out, the target
fails and the next collection walks all of them again.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import cast

from tsuzuki.collectors.commits.closure import left_out
from tsuzuki.collectors.commits.collection_context import CollectionContext
from tsuzuki.collectors.commits.queries import closure, completions
from tsuzuki.collectors.commits.queries.details import PathIds, has_incomplete
from tsuzuki.collectors.commits.queries.pages import complete_page
from tsuzuki.collectors.commits.queries.projects import Project
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import (
    CommitPage,
    CommitSource,
    Lineage,
    Range,
    RangeLost,
    can_go_on,
)
from tsuzuki.store.sql.database import Connection


class BranchCompletion:
    """The completion of one target. `page_stored` is called after each page, and may raise."""

    def __init__(
        self,
        context: CollectionContext,
        project: Project,
        target: Target,
        path_ids: PathIds,
        *,
        page_stored: Callable[[], None],
    ) -> None:
        self._context = context
        self._name = f"{target.branch} of {project.path}"
        self._target = target
        self._path_ids = path_ids
        self._page_stored = page_stored
        self._given_up: Range | None = None
        self._commits = 0

    def complete(self, source: CommitSource, head: str) -> None:
        """Complete the branch, which is stored up to `head`, the head it has at its source."""
        while (wanted := self._next_range(source, head)) is not None:
            mark = self._mark_of(wanted)
            self._log(
                f"reading parents and paths of commits stored earlier, up to {wanted.new[:12]}"
            )
            pages = cast("Generator[CommitPage, None, None]", source.pages(wanted, mark=mark))
            try:
                with closing(pages):
                    for page in pages:
                        self._store(page, wanted)
            except RangeLost:
                if wanted == self._given_up:
                    raise
                self._given_up = wanted
                self._start(Range(old=None, new=head))

    def _next_range(self, source: CommitSource, head: str) -> Range | None:
        """None once the branch is complete."""
        with self._context.database.read() as connection:
            if completions.is_complete(connection, self._target):
                return None
            before = completions.get(connection, self._target)
            others = completions.complete_heads(connection, self._target)
            is_incomplete = has_incomplete(connection, self._target)
        if not is_incomplete:
            self._finish_without_reading(head)
            return None
        if before.wanted is not None and can_go_on(source, before.wanted, head):
            return before.wanted
        olds = [before.head] if before.head not in (None, head) else others
        old = next((old for old in olds if old and _is_there(source, old, head)), None)
        return self._start(Range(old=old, new=head))

    def _start(self, wanted: Range) -> Range:
        with self._context.run.transaction() as connection:
            self._context.require_ours(connection)
            completions.start_range(connection, self._target, wanted)
        return wanted

    def _mark_of(self, wanted: Range) -> str | None:
        with self._context.database.read() as connection:
            stored = completions.get(connection, self._target)
        return stored.mark if stored.wanted == wanted else None

    def _store(self, page: CommitPage, wanted: Range) -> None:
        try:
            with self._context.run.transaction() as connection:
                self._context.require_ours(connection)
                complete_page(connection, self._target, page.commits, self._path_ids)
                lacking = self._move(connection, page, wanted)
        except BaseException:
            self._path_ids.clear()
            raise
        self._commits += len(page.commits)
        if lacking:
            raise left_out(lacking)
        if page.is_last:
            self._log(f"parents and paths of {self._commits} commits read")
        self._page_stored()

    def _move(self, connection: Connection, page: CommitPage, wanted: Range) -> set[str]:
        """Turn the page, or finish the range. The commits that its pages left out, if any: then all are read anew."""
        if not page.is_last:
            completions.turn_page(connection, self._target, mark=page.mark)
            return set()
        lacking = closure.without_parents(connection, self._target, wanted.new)
        if lacking:
            everything = Range(old=None, new=wanted.new)
            completions.start_range(connection, self._target, everything)
        else:
            completions.finish_range(connection, self._target, head=wanted.new)
        return lacking

    def _finish_without_reading(self, head: str) -> None:
        """Other branches have brought the details of every commit."""
        with self._context.run.transaction() as connection:
            self._context.require_ours(connection)
            completions.start_range(connection, self._target, Range(old=None, new=head))
            completions.finish_range(connection, self._target, head=head)

    def _log(self, words: str) -> None:
        self._context.run.log(f"{self._name}: {words}")


def _is_there(source: CommitSource, old: str, head: str) -> bool:
    return source.lineage(old, head) is not Lineage.UNKNOWN
