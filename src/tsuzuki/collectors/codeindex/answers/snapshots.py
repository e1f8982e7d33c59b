"""What an answer is made from: one state of the tree.

A snapshot is one state of the index, and files that are read once each. If git rewrote the tree or a quoted file was
written meanwhile, what was made from the snapshot is thrown away and made from another one, and so is a refusal: what
was not found may have been between two places. If the tree does not come to rest, the last answer is given and marked
as made from a changing tree.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tsuzuki.collectors.codeindex.answers.changed_files import (
    TreeChanges,
    only_listed,
    tree_changes,
)
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles, ParsedFiles
from tsuzuki.collectors.codeindex.answers.store_back import store_back
from tsuzuki.collectors.codeindex.builds import owner
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.moments import nanoseconds
from tsuzuki.collectors.codeindex.queries import builds, lookups, meta
from tsuzuki.collectors.codeindex.tree.git_folder import (
    GitState,
    git_folder_of,
    git_state,
    head_commit,
    lock_age_seconds,
)
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import TsuzukiError

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.watch.live_tree import LiveTree, Moment

SECONDS_MAX = 10.0
LOCK_WAIT_SECONDS = 0.05
LOCK_WAITS_MAX = 100
ABANDONED_LOCK_SECONDS = 60.0
ASK_AGAIN = "The files of this tree were being rewritten; ask again."


@dataclass(frozen=True, kw_only=True)
class IndexState:
    """What an answer was made from."""

    root: str
    state: str
    """`ready`, `building`, `missing`, or `changing` if the tree was rewritten while it was read."""

    at: str | None = None
    """When the last build completed."""

    head: str | None = None
    """The commit that is checked out, shortened."""

    percent: int | None = None
    """How far a running build is."""

    pending: int = 0
    """Files that have changed since and are too many to be parsed for an answer."""

    reread: int = 0
    """Files that were parsed for this answer."""

    unlisted_folders: tuple[str, ...] = ()
    """Repositories whose files git did not list, `.` for the root. Of those a server shows only files that git listed
    before; otherwise ignored files may be among them."""


class Snapshot:
    """One state of the index and of the files, read inside a `with`. A refusal inside it is not raised there but kept:
    it counts only if this is the last snapshot."""

    state: IndexState
    """What the answer was made from; set with the last snapshot, when it is known whether the tree kept still."""

    def __init__(
        self, files: FreshFiles, *, live: "LiveTree | None" = None, is_confined: bool = False
    ) -> None:
        self.files = files
        self.changes = TreeChanges()
        self.refusal: TsuzukiError | None = None
        self._live = live
        self._moment: Moment | None = None
        self._is_confined = is_confined

    def __enter__(self) -> Self:
        self._moment = self._live.catch_up() if self._live else None  # before the index is read
        if self.files.connection is not None:
            lookups.begin_reading(self.files.connection)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        problem: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if self.files.connection is not None:
            lookups.end_reading(self.files.connection)
        self.refusal = problem if isinstance(problem, TsuzukiError) else None
        return self.refusal is not None

    def compare(self) -> tuple[FreshFiles, TreeChanges]:
        """The files, and how the tree differs from the index. To a confined caller only listed files are shown."""
        if self._live and self._moment:
            self.changes = self._live.changes(self.files, since=self._moment)
        else:
            self.changes = tree_changes(self.files)
        if self._is_confined:
            self.changes = only_listed(self.files, self.changes)
            self.files.show_only(self.changes.scanned)
        return self.files, self.changes


def snapshots(
    root: Path,
    index: IndexFile | None,
    *,
    clock: Clock,
    live: "LiveTree | None" = None,
    is_confined: bool = False,
) -> Iterator[Snapshot]:
    """One snapshot after another until the tree was the same before and after it, for ten seconds at most. An answer
    is made anew from each, and what was made from the last one counts. A refusal that counts is raised."""
    folder = git_folder_of(root)
    deadline = clock.monotonic() + SECONDS_MAX
    read_at_ns = nanoseconds(clock.now())  # before any file is read
    parsed: ParsedFiles = {}
    while True:
        before = _wait_for_git(folder, clock)
        files = FreshFiles(root, index.connection if index else None, parsed)
        snapshot = Snapshot(files, live=live, is_confined=is_confined)
        yield snapshot
        is_settled = not before.locked and git_state(folder) == before and files.settled()
        if is_settled or before.locked or clock.monotonic() >= deadline:
            break
    if snapshot.refusal is not None:
        raise snapshot.refusal if is_settled else _not_at_rest(snapshot.refusal)
    snapshot.state = _index_state(index, snapshot, is_settled=is_settled, clock=clock)
    if index and is_settled:
        listed = () if snapshot.changes.unlisted_folders else snapshot.changes.scanned
        store_back(index, files, listed=listed, now_ns=read_at_ns)


def _not_at_rest(refusal: TsuzukiError) -> TsuzukiError:
    refusal.hint = " ".join(filter(None, (ASK_AGAIN, refusal.hint)))
    return refusal


def _wait_for_git(folder: Path | None, clock: Clock) -> GitState:
    """The state once git has let go of the tree, or with its lock if it does not within five seconds."""
    never = threading.Event()
    for _ in range(LOCK_WAITS_MAX):
        state = git_state(folder)
        if folder is None or not state.locked or _is_abandoned(folder, clock):
            break
        clock.wait(never, LOCK_WAIT_SECONDS)
    return state


def _is_abandoned(folder: Path, clock: Clock) -> bool:
    """A git that was killed leaves its lock. It is told of, but not waited for with every question."""
    return lock_age_seconds(folder, now=clock.now().timestamp()) > ABANDONED_LOCK_SECONDS


def _index_state(
    index: IndexFile | None, snapshot: Snapshot, *, is_settled: bool, clock: Clock
) -> IndexState:
    root, changes = snapshot.files.root, snapshot.changes
    unlisted = tuple(folder or "." for folder in changes.unlisted_folders)
    if index is None:
        return IndexState(
            root=str(root),
            state="missing" if is_settled else "changing",
            head=head_commit(root),
            unlisted_folders=unlisted,
        )
    build = builds.read(index.connection)
    stats = meta.index_stats(index.connection)
    percent = None
    if build and build.is_running and owner.is_alive(build, now_ns=nanoseconds(clock.now())):
        progress = build.job.progress
        percent = int(100 * progress.processed / progress.total) if progress.total else 0
    ready = "ready" if percent is None else "building"
    return IndexState(
        root=str(root),
        state=ready if is_settled else "changing",
        at=stats.last_indexed_at if stats else None,
        head=head_commit(root),
        percent=percent,
        pending=changes.pending,
        reread=len(snapshot.files.reread),
        unlisted_folders=unlisted,
    )
