"""Closure of a branch: the proof that nothing of it is missing, before its head moves.

A server may send a page that is short, empty or another one than was asked for, and call it good. But every commit
names its parents, so what is missing shows: a commit that another one names and that is not stored. The pages of a
range are followed as they come; only a range that was begun earlier is looked through in the database, so that pages
stored before a crash are part of the proof. What is missing is asked for by its own id, page after page, until nothing
is. Git gives a range whole or fails, so for a repository the proof costs a look and finds nothing.
"""

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from typing import TypeAlias, cast

from tsuzuki.collectors.commits.collection_context import CollectionContext
from tsuzuki.collectors.commits.queries import closure, completions, targets
from tsuzuki.collectors.commits.queries.details import PathIds
from tsuzuki.collectors.commits.queries.notes import add_date_notes
from tsuzuki.collectors.commits.queries.pages import store_page, stored_among
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import (
    Commit,
    CommitPage,
    CommitSource,
    Lineage,
    Range,
    RangeLost,
)
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable
from tsuzuki.store.sql.database import Connection

SHOWN_MAX = 3

Finish: TypeAlias = Callable[[Connection, Collection[str]], None]
"""Moves the branch once nothing is missing but commits that the source does not have."""


class BranchClosure:
    """The proof for one target. `page_stored` is called after each page, and may raise."""

    def __init__(
        self,
        context: CollectionContext,
        target: Target,
        path_ids: PathIds,
        *,
        page_stored: Callable[[], None],
    ) -> None:
        self._context = context
        self._target = target
        self._path_ids = path_ids
        self._page_stored = page_stored
        self._open: set[str] = set()
        self._absent: set[str] = set()

    def start(self, head: str, *, from_stored: bool) -> None:
        """Begin with a head whose commits are read next; with `from_stored`, with all that is stored below it."""
        self._open = {head}
        if from_stored:
            with self._context.database.read() as connection:
                self._open = closure.missing_from(connection, self._target, head)

    def follow(self, commits: Sequence[Commit]) -> None:
        """Take in a page that is being stored."""
        for commit in commits:
            if commit.parents:
                self._open.update(commit.parents.split(" "))
        self._open.difference_update([commit.sha for commit in commits])

    def is_closed(self, connection: Connection) -> bool:
        """Whether every commit that was named is stored. One that came before it was named is looked up here."""
        if self._open:
            here, _anywhere = stored_among(connection, self._target, sorted(self._open))
            self._open -= here
        return not self._open

    def fill(self, source: CommitSource, head: str, finish: Finish) -> None:
        """Ask for what is missing below `head`, then finish. Raises `SourceFailed` if some of it does not come."""
        while missing := self._open - self._absent:
            self._ask(source, head, min(missing))
        unconfirmed: set[str] = set()
        project_id, collection_id = self._target.project_id, self._context.collection_id
        with self._context.run.transaction() as connection:
            self._context.require_ours(connection)
            unconfirmed = self._open - closure.absent_before(
                connection, project_id, self._open, collection_id=collection_id
            )
            if unconfirmed:
                closure.add_absences(
                    connection, project_id, unconfirmed, collection_id=collection_id
                )
            else:
                finish(connection, self._open)
        if unconfirmed:
            raise _absent(unconfirmed)

    def _ask(self, source: CommitSource, head: str, sha: str) -> None:
        """Walk from a missing commit for as long as that brings any."""
        pages = cast("Generator[CommitPage, None, None]", source.pages(Range(old=None, new=sha)))
        try:
            with closing(pages):
                for page in pages:
                    if not self._store(page):
                        return
        except RangeLost:
            if source.lineage(sha, head) is not Lineage.UNKNOWN:
                raise _missing(self._open) from None
            self._absent.add(sha)

    def _store(self, page: CommitPage) -> bool:
        """Store a page; true if the next one may bring more of what is missing."""
        context, target = self._context, self._target
        try:
            with context.run.transaction() as connection:
                context.require_ours(connection)
                with completions.kept_complete(connection, target):
                    added = store_page(connection, target, page.commits, self._path_ids)
                    targets.count_added(
                        connection, target, added=added, collection_id=context.collection_id
                    )
                add_date_notes(connection, context.collection_id, target, page.date_notes)
                self.follow(page.commits)
                self.is_closed(connection)
        except BaseException:
            self._path_ids.clear()
            raise
        self._page_stored()
        return added > 0 and not self._open <= self._absent


def first_of(shas: Collection[str]) -> str:
    """The first few of some ids, for a message."""
    shown = [sha[:12] for sha in sorted(shas)[:SHOWN_MAX]]
    return ", ".join(shown if len(shas) <= SHOWN_MAX else [*shown, "…"])


def _missing(shas: Collection[str]) -> SourceUnavailable:
    return SourceUnavailable(
        f"at least {len(shas)} commits are missing ({first_of(shas)}): the source left "
        "them out of its pages and did not send them when asked again",
        hint="Received commits are stored; the next collection requests the rest.",
        code="commits_missing",
    )


def left_out(shas: Collection[str]) -> SourceRefused:
    """Raised where what the pages lacked is left to the next collection."""
    problem = _missing(shas)
    return SourceRefused(problem.message, hint=problem.hint, code=problem.specific_code)


def _absent(shas: Collection[str]) -> SourceRefused:
    return SourceRefused(
        f"at least {len(shas)} commits are missing ({first_of(shas)}): others name them as "
        "parents, but the source does not have them",
        hint="Collect again: if they are still missing, the history is assumed to begin after "
        "them.",
        code="commits_absent",
    )
