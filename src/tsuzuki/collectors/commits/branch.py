"""Collect one branch: from the head up to which it is stored, to the current head.

Both ends of a range are fixed before its first page; each page is one transaction of the run together with the mark
of the next; the head moves with the last page, unless a commit names a parent that is missing (`closure`). So a
crash at any point costs at most one page, and nothing that was stored is requested again.
"""

from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import cast

from tsuzuki.collectors.commits.closure import BranchClosure, first_of
from tsuzuki.collectors.commits.collection_context import CollectionContext
from tsuzuki.collectors.commits.completion import BranchCompletion
from tsuzuki.collectors.commits.mailmap_reading import new_mailmap
from tsuzuki.collectors.commits.queries import completions, mailmaps, projects, targets
from tsuzuki.collectors.commits.queries.details import PathIds
from tsuzuki.collectors.commits.queries.ledger import SettledTarget
from tsuzuki.collectors.commits.queries.notes import Note, add_date_notes, add_notes
from tsuzuki.collectors.commits.queries.pages import store_page
from tsuzuki.collectors.commits.queries.projects import Project
from tsuzuki.collectors.commits.queries.targets import Target, TargetState
from tsuzuki.collectors.commits.sources.source import (
    Absence,
    CommitPage,
    CommitSource,
    Head,
    Lineage,
    Range,
    RangeLost,
    can_go_on,
)
from tsuzuki.collectors.commits.tables import NoteKind
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.outward.errors import SourceRefused
from tsuzuki.store.sql.database import Connection


class BranchCollection:
    """One target of a collection. `collect` may be called again after a `SourceFailed`: it goes
    on behind the last page that was stored."""

    def __init__(self, context: CollectionContext, project: Project, target: Target) -> None:
        self._context = context
        self._project = project
        self._target = target
        self._notes: dict[NoteKind, str] = {}
        self._given_up: Range | None = None
        self._renamed_to: str | None = None
        self._default_moved_to: str | None = None
        self._path_ids = PathIds()
        self._closure = BranchClosure(
            context, target, self._path_ids, page_stored=self._page_stored
        )
        self._is_settled = False
        self._mailmap: tuple[str, str] | None = None
        self.pages_stored = 0

    def collect(self, source: CommitSource) -> None:
        """Bring the branch to its head of today and settle it. Raises `SourceFailed`."""
        found = source.head(self._target.branch)
        self._stop_if_asked()  # the source may have kept us waiting
        state = self._state()
        if isinstance(found, Absence):
            self._settle_absence(found, state, source)
            return
        self._note_changes(found, state, source)
        if found.is_default or state.is_default or self._is_of_default():
            text = new_mailmap(self._context, self._project, source, found.sha)
            self._mailmap = None if text is None else (found.sha, text)
        while state.wanted is not None or state.head != found.sha:
            wanted, mark = self._next_range(source, state, found.sha)
            try:
                self._collect_range(source, state, wanted, mark, ends=wanted.new == found.sha)
            except RangeLost:
                if wanted is not state.wanted:
                    raise  # started a moment ago: the source contradicts itself
                self._given_up = wanted
                continue
            if self._is_settled:
                return
            state = self._state()
        self._complete(source, found.sha)
        self._check_stored_before(source, found.sha)
        self._settle()

    def fail(self, sentence: str) -> None:
        """Settle the branch as failed; what was stored stays, and is not asked for again."""
        with self._context.run.transaction() as connection:
            self._context.require_ours(connection)
            self._context.settle(connection, self._target, SettledTarget(error=sentence))

    # --- which range ----------------------------------------------------------------------------

    def _next_range(
        self, source: CommitSource, state: TargetState, head: str
    ) -> tuple[Range, str | None]:
        stored = state.wanted
        if stored is not None:
            if stored != self._given_up and can_go_on(source, stored, head):
                return stored, state.mark
            self._note(
                NoteKind.HISTORY_REPLACED,
                f"the range {(stored.old or 'the beginning')[:12]}..{stored.new[:12]} can no "
                "longer be read and was restarted; what was collected before is kept",
            )
        wanted = self._new_range(source, state, head)
        with self._context.run.transaction() as connection:
            self._context.require_ours(connection)
            if state.head is None and state.wanted is None and wanted.since is None:
                completions.start_empty(connection, self._target)
            with completions.kept_complete(connection, self._target):
                targets.start_range(
                    connection, self._target, wanted, collection_id=self._context.collection_id
                )
            self._keep_notes(connection)
        return wanted, None

    def _new_range(self, source: CommitSource, state: TargetState, head: str) -> Range:
        if state.head is None:
            since = self._since(state)
            if since is not None:
                self._note(
                    NoteKind.HEAD_UNKNOWN,
                    "commits were stored without their branch head: collected again with an overlap",
                )
            return Range(old=None, new=head, since=since)
        match source.lineage(state.head, head):
            case Lineage.ANCESTOR:
                return Range(old=state.head, new=head)
            case Lineage.REWRITTEN:
                self._note(
                    NoteKind.FORCE_PUSH,
                    f"the branch was force-pushed: {state.head[:12]} is no longer on it; what was "
                    "collected before is kept",
                )
                return Range(old=state.head, new=head)
            case Lineage.RESET:
                self._note(
                    NoteKind.FORCE_PUSH,
                    f"the branch was reset from {state.head[:12]} to {head[:12]}, an earlier commit; "
                    "what was collected before is kept",
                )
                return Range(old=state.head, new=head)
            case Lineage.UNKNOWN:
                self._note(
                    NoteKind.HISTORY_REPLACED,
                    f"the source no longer has {state.head[:12]}: collected again with an overlap; "
                    "what was collected before is kept",
                )
                return Range(old=None, new=head, since=self._since(state))

    def _since(self, state: TargetState) -> datetime | None:
        """The checkpoint less the overlap. A date in the future must not hide what comes next.

        A range that was given up may have stored its newest pages: then the checkpoint says nothing
        about what is older, and the bound of that range holds."""
        if state.wanted is not None:
            return state.wanted.since
        with self._context.database.read() as connection:
            newest = targets.checkpoint(connection, self._target)
        if newest is None:
            return None
        try:
            moment = datetime.fromisoformat(newest)
        except ValueError:  # a year beyond 9999
            moment = self._context.clock.now()
        if moment.tzinfo is None:  # stored by another program; the column is UTC
            moment = moment.replace(tzinfo=UTC)
        return min(moment, self._context.clock.now()) - self._context.overlap

    # --- page after page ------------------------------------------------------------------------

    def _collect_range(
        self,
        source: CommitSource,
        state: TargetState,
        wanted: Range,
        mark: str | None,
        *,
        ends: bool,
    ) -> None:
        """Store the pages of a range behind `mark`, and what they lacked."""
        self._closure.start(wanted.new, from_stored=state.wanted is not None)
        if mark != targets.WALKED and self._walk(
            source.pages(wanted, mark=mark), wanted, ends=ends
        ):
            return
        finish = partial(self._finish_filled, wanted, ends)
        self._closure.fill(source, wanted.new, finish)

    def _walk(self, pages: Iterator[CommitPage], wanted: Range, *, ends: bool) -> bool:
        """Store page after page; whether the range is finished then."""
        is_finished = False
        with closing(cast("Generator[CommitPage, None, None]", pages)):
            for page in pages:
                try:
                    is_finished = self._store(page, wanted, ends=ends)
                except BaseException:
                    self._path_ids.clear()  # some may not be stored
                    raise
                self._page_stored()
        return is_finished

    def _page_stored(self) -> None:
        self.pages_stored += 1
        self._stop_if_asked()

    def _stop_if_asked(self) -> None:
        if self._context.stopping():
            raise RunStopped

    def _store(self, page: CommitPage, wanted: Range, *, ends: bool) -> bool:
        """A page's rows, its mark or the new head, and the result if this was all. Whether the range is finished."""
        context, target = self._context, self._target
        with context.run.transaction() as connection:
            context.require_ours(connection)
            with completions.kept_complete(connection, target) as is_complete:
                added = store_page(connection, target, page.commits, self._path_ids)
                self._closure.follow(page.commits)
                is_finished = page.is_last and self._closure.is_closed(connection)
                if is_finished:
                    self._finish(connection, wanted, added, is_proved=is_complete)
                else:
                    mark = targets.WALKED if page.is_last else page.mark
                    targets.turn_page(
                        connection,
                        target,
                        mark=mark,
                        added=added,
                        collection_id=context.collection_id,
                    )
            add_date_notes(connection, context.collection_id, target, page.date_notes)
            if is_finished and ends:
                self._settle_if_whole(connection)
        return is_finished

    def _finish(
        self, connection: Connection, wanted: Range, added: int, *, is_proved: bool
    ) -> None:
        targets.finish_range(
            connection,
            self._target,
            head=wanted.new,
            added=added,
            collection_id=self._context.collection_id,
            now=self._context.clock.now(),
            is_proved=is_proved,
        )

    def _finish_filled(
        self, wanted: Range, ends: bool, connection: Connection, absent: Collection[str]
    ) -> None:
        self._note_absent(absent)
        with completions.kept_complete(connection, self._target) as is_complete:
            self._finish(connection, wanted, 0, is_proved=is_complete)
        self._keep_notes(connection)
        if ends:
            self._settle_if_whole(connection)

    def _settle_if_whole(self, connection: Connection) -> None:
        """Settle the branch, unless commits stored earlier are still to be completed or checked."""
        state = targets.get(connection, self._target)
        if state and state.is_closed and completions.is_complete(connection, self._target):
            self._settle_in(connection)

    def _check_stored_before(self, source: CommitSource, head: str) -> None:
        """Look once through what a version that did not check has stored, and bring what is missing."""
        if not self._state().is_closed:
            self._closure.start(head, from_stored=True)
            self._closure.fill(source, head, self._close)

    def _close(self, connection: Connection, absent: Collection[str]) -> None:
        self._note_absent(absent)
        targets.close(connection, self._target)

    def _complete(self, source: CommitSource, head: str) -> None:
        """Bring what commits stored earlier lack."""
        completion = BranchCompletion(
            self._context,
            self._project,
            self._target,
            self._path_ids,
            page_stored=self._page_stored,
        )
        completion.complete(source, head)

    # --- what else was met ----------------------------------------------------------------------

    def _note_changes(self, found: Head, state: TargetState, source: CommitSource) -> None:
        """Note a renamed project and a moved default branch."""
        if found.path is not None and found.path != self._project.path:
            self._renamed_to = found.path
            self._note(
                NoteKind.PROJECT_RENAMED, f"the project {self._project.path} is now {found.path}"
            )
        if state.is_default and found.is_default is False:
            self._note_default(source)

    def _note_default(self, source: CommitSource) -> None:
        default = source.default_branch()
        if default is not None and default != self._target.branch:
            self._default_moved_to = default
            self._note(
                NoteKind.DEFAULT_MOVED,
                f"the project's default branch is now {default}, which is a target from the next "
                "collection on",
            )

    def _note_absent(self, shas: Collection[str]) -> None:
        if shas:
            self._note(
                NoteKind.PARENTS_ABSENT,
                f"the history is incomplete: {len(shas)} parents are missing at the source "
                f"({first_of(shas)})",
            )

    def _note(self, kind: NoteKind, sentence: str) -> None:
        """Note it once; a second thing of the same kind is told behind the first."""
        before = self._notes.get(kind)
        if before is None:
            self._notes[kind] = sentence
        elif sentence not in before:
            self._notes[kind] = f"{before}; {sentence}"

    def _settle_absence(self, absence: Absence, state: TargetState, source: CommitSource) -> None:
        branch = self._target.branch
        if absence is Absence.EMPTY_REPOSITORY:
            kept = "; what was collected before is kept" if state.head else " yet"
            self._note(NoteKind.EMPTY_REPOSITORY, f"the repository has no commits{kept}")
            self._settle()
            return
        if state.is_default:
            self._note_default(source)
        if state.has_commits:
            self._note(
                NoteKind.BRANCH_GONE,
                f"the branch {branch} was deleted; what was collected before is kept",
            )
        elif self._default_moved_to is not None:
            self._note(
                NoteKind.BRANCH_GONE,
                f"the branch {branch} was deleted before it was collected, and is no longer a target",
            )
        else:
            default = source.default_branch()
            raise SourceRefused(
                f"no branch {branch!r}",
                hint=f"The project's default branch is {default!r}." if default else None,
                code="branch_unknown",
            )
        self._settle(is_followed=state.has_commits)

    # --- the end --------------------------------------------------------------------------------

    def _settle(self, *, is_followed: bool = True) -> None:
        with self._context.run.transaction() as connection:
            self._context.require_ours(connection)
            self._settle_in(connection)
            if not is_followed:
                targets.unfollow(connection, self._target)

    def _settle_in(self, connection: Connection) -> None:
        if self._renamed_to is not None:
            projects.rename(connection, self._project.project_id, self._renamed_to)
        if self._default_moved_to is not None:
            self._follow_default(connection, self._default_moved_to)
        if self._mailmap is not None:
            head, text = self._mailmap
            mailmaps.put(connection, self._project.project_id, head=head, content=text)
        added = targets.added_in(connection, self._target, self._context.collection_id)
        self._keep_notes(connection)
        self._context.settle(connection, self._target, SettledTarget(new_commits=added))
        self._is_settled = True

    def _keep_notes(self, connection: Connection) -> None:
        """Store them with the range they are about: a crash before its last page loses none."""
        notes = [Note(kind=kind, sentence=text) for kind, text in self._notes.items()]
        add_notes(connection, self._context.collection_id, self._target, notes)

    def _follow_default(self, connection: Connection, branch: str) -> None:
        projects.move_default(connection, self._project.project_id, branch)
        targets.follow(connection, Target(self._project.project_id, branch), is_default=True)
        targets.follow(connection, self._target)

    def _is_of_default(self) -> bool:
        return self._project.default_branch == self._target.branch

    def _state(self) -> TargetState:
        with self._context.database.read() as connection:
            state = targets.get(connection, self._target)
        if state is None:
            raise LookupError(f"{self._target} is not a target")
        return state
