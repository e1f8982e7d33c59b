"""Follow a tree: bring its index up to date whenever something in it changed.

One build is in flight at a time, and a burst of changes is one build. Of several watchers of a tree one works, in
whichever process; the others wait, and one of them takes over when it ends. Answers in the same process need not walk
the tree, because `live` knows what changed.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildStatus
from tsuzuki.collectors.codeindex.builds.jobs import error_words
from tsuzuki.collectors.codeindex.index_file import IndexCorrupt, IndexFile, index_path
from tsuzuki.collectors.codeindex.moments import iso
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome
from tsuzuki.collectors.codeindex.queries import meta
from tsuzuki.collectors.codeindex.queries.files import KnownFile
from tsuzuki.collectors.codeindex.service.builds import Builds, StartedBuild
from tsuzuki.collectors.codeindex.tree.doubt import is_in_doubt
from tsuzuki.collectors.codeindex.tree.git_folder import git_folder_of, lock_age_seconds
from tsuzuki.collectors.codeindex.tree.part import TreePart, scan_part
from tsuzuki.collectors.codeindex.tree.scan import ScannedFile, scan_tree
from tsuzuki.collectors.codeindex.tree.unlisted import storable
from tsuzuki.collectors.codeindex.watch.live_tree import LiveTree
from tsuzuki.collectors.codeindex.watch.notifier import (
    Changed,
    ChangeSource,
    NotificationsRefused,
    Notifier,
    Polling,
)
from tsuzuki.collectors.codeindex.watch.watch_event import WatchEvent, WatchState
from tsuzuki.collectors.codeindex.watch.watch_lock import WatchLock, watching_pid
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import TsuzukiError

__all__ = ["BuildJob", "WatchEvent", "WatchState", "Watcher"]

LOOK_SECONDS = 0.5
"""How often it is looked whether the root is there, and whether a waiting watcher may take over."""

PID_LOOK_SECONDS = 0.02
PID_LOOKS_MAX = 25
PROGRESS_SECONDS = 0.25
LATER_SECONDS = 1.0
GIT_LOOK_SECONDS = 0.02
GIT_SECONDS_MAX = 10.0
RETRY_SECONDS = 1.0
RETRY_SECONDS_MAX = 60.0
RENEW_SECONDS = 60.0
"""How long it polls before it asks for notifications again."""

CLOSE_SECONDS = 10.0

OnEvent = Callable[[WatchEvent], None]


class _Stopped(Exception):
    """The watcher is being closed."""


class Watcher:
    """Watches one tree in a thread of its own, from `start` to `close`. `on_event` is called in that thread."""

    def __init__(
        self,
        root: Path,
        *,
        builds: Builds | None = None,
        clock: Clock | None = None,
        on_event: OnEvent = lambda _event: None,
    ) -> None:
        self.root = root
        self.state = WatchState.CLOSED
        self.live: LiveTree | None = None
        """What is known of the tree while it is watched by notifications, for answers in this process."""

        self._source: ChangeSource | None = None
        self._builds = builds or Builds()
        self._clock = clock or SystemClock()
        self._on_event = on_event
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._bug: Exception | None = None
        self._resting_state = WatchState.WATCHING
        self._note: str | None = None
        self._must_build = True
        self._retry_seconds = RETRY_SECONDS

    def start(self) -> Self:
        """Start to watch. The first build starts at once, unless another watcher works already."""
        if self._thread is not None:
            raise ValueError("a watcher is started once")
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()
        return self

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Stop. A build that it started is cancelled; what that stored is kept. Whether all has ended in time."""
        self._stopping.set()
        if (source := self._source) is not None:
            source.wake()
        if self._thread is not None:
            self._thread.join(seconds)
        if self._bug is not None:
            raise self._bug
        return self._thread is None or not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _run(self) -> None:
        try:
            while True:
                self._work_once()
        except _Stopped:
            self._tell(WatchState.CLOSED)
        except Exception as bug:  # noqa: BLE001 -- for `close`, which raises it
            self._bug = bug
            self._tell(WatchState.CLOSED, note=error_words(bug))

    def _work_once(self) -> None:
        """Get the lock and watch until something goes wrong, then pause."""
        lock = None
        try:
            lock = self._locked()
            while True:
                self._watch()
        except (TsuzukiError, OSError) as problem:
            self._tell(WatchState.RETRYING, note=error_words(problem))
        finally:
            if lock is not None:
                lock.release()
        self._must_build = True
        self._pause(self._retry_seconds)
        self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS_MAX)

    def _locked(self) -> WatchLock:
        """Wait until no other watcher has the tree. It is told which process has it, and told again when that is
        known only later, or is another one."""
        told: int | None = None
        while True:
            index_file = index_path(self.root, self._builds.folder)
            lock = WatchLock.take(index_file)
            if lock is not None:
                return lock
            pid = self._watching_pid(index_file, looks=1 if told is not None else PID_LOOKS_MAX)
            if pid is not None and (told is None or pid not in {0, told}):
                who = f"process {pid}" if pid else "another process"
                self._tell(WatchState.WAITING, note=f"{who} watches it")
                told = pid
            self._pause(PID_LOOK_SECONDS if pid is None else LOOK_SECONDS)

    def _watching_pid(self, index_file: Path, *, looks: int) -> int | None:
        """A process writes its id just after it got the lock: one that is missing is looked for again. None if the
        lock was given back meanwhile."""
        for _ in range(looks - 1):
            pid = watching_pid(index_file)
            if pid != 0:
                return pid
            self._pause(PID_LOOK_SECONDS)
        return watching_pid(index_file)

    def _watch(self) -> None:
        """Follow the root that is there now; return when it is another one, or none."""
        root_identity = self._identity()
        if root_identity is None:
            self._tell(WatchState.ROOT_GONE, note="it was moved or removed")
            while self._identity() is None:
                self._pause(LOOK_SECONDS)
            self._must_build = True
            return
        self._source = source = self._opened_source()
        try:
            self._follow(source, root_identity)
        except NotificationsRefused:
            return  # a folder came that cannot be watched: start again, and poll
        finally:
            self.live = self._source = None
            source.close()

    def _opened_source(self) -> ChangeSource:
        try:
            notifier = Notifier(self.root, stopping=self._stopping, is_own=self._is_own)
        except NotificationsRefused as refused:
            self._resting_state = WatchState.POLLING
            self._note = f"change notifications are unavailable: {refused}"
            return Polling(self._clock, stopping=self._stopping)
        self._resting_state, self._note = WatchState.WATCHING, None
        self.live = LiveTree(self.root, notifier, self._clock)
        return notifier

    def _follow(self, source: ChangeSource, root_identity: tuple[int, int]) -> None:
        until = self._clock.monotonic() + RENEW_SECONDS
        later_at: float | None = None
        changed = self._settled(source, Changed(whole=True))
        while self._identity() == root_identity:
            self._update(changed)
            now = self._clock.monotonic()
            if self._resting_state is WatchState.POLLING and now >= until:
                return
            wait = LOOK_SECONDS if later_at is None else min(LOOK_SECONDS, later_at - now)
            changed = self._settled(source, source.next(max(wait, 0.0)))
            self._raise_if_stopped()
            now = self._clock.monotonic()
            if changed.later and later_at is None:
                later_at = now + LATER_SECONDS
            if changed.has_rules or (later_at is not None and now >= later_at):
                source.renew()
                changed, later_at = changed | Changed(whole=True), None
        self._must_build = True

    def _settled(self, source: ChangeSource, changed: Changed) -> Changed:
        """Wait while git rewrites the tree, so that a change of branch is one build."""
        folder = git_folder_of(self.root) if changed.paths or changed.whole else None
        if folder is None:
            return changed
        deadline = self._clock.monotonic() + GIT_SECONDS_MAX
        waited = False
        while (folder / "index.lock").exists() and self._clock.monotonic() < deadline:
            if lock_age_seconds(folder, now=self._clock.now().timestamp()) > GIT_SECONDS_MAX:
                break
            waited = True
            self._pause(GIT_LOOK_SECONDS)
        return changed | source.next(GIT_LOOK_SECONDS) if waited else changed

    def _update(self, changed: Changed) -> None:
        """Bring the index to what changed. Builds of other processes are waited for, and their end is reported."""
        followed: BuildJob | None = None
        while changed.whole or changed.paths or self._must_build:
            part = self._part(changed)
            if part is not None and not self._differs(part):
                break
            started = self._builds.start_for_watcher(self.root, part)
            followed = self._followed(started)
            if started.is_new:
                self._must_build = followed is None or followed.status is not BuildStatus.COMPLETED
                self._told_end(followed)
                return
        if followed is not None or self.state is not self._resting_state:
            self._tell(self._resting_state, job=followed, note=self._note)

    def _part(self, changed: Changed) -> TreePart | None:
        """What is to be compared with the index; None for the whole tree, even if the index is up to date."""
        if self._must_build:
            return None
        part = None if changed.whole else scan_part(self.root, changed.paths)
        return part or TreePart(scan=scan_tree(self.root, on_tick=self._raise_if_stopped))

    def _differs(self, part: TreePart) -> bool:
        """Whether a build of it would find anything to do."""
        try:
            index = IndexFile.open_existing(self.root, folder=self._builds.folder)
        except IndexCorrupt:
            return True
        if index is None:
            return True
        with index, index.reading():
            known = part.known(index.connection)
            marked = meta.unlisted_folders(index.connection)
        scan = storable(part.scan, known, marked)
        present = {file.path for file in scan.files if not self._is_own_path(file.path)}
        gone = any(path not in present and not scan.may_have(path) for path in known)
        return gone or any(
            _may_differ(file, known.get(file.path), is_told_of=part.paths is not None)
            for file in scan.files
            if file.path in present
        )

    def _followed(self, started: StartedBuild) -> BuildJob | None:
        """Wait for a build to end, in this process or another. None if it was taken over."""
        job_id, note = started.id, "; ".join(started.notes) or None
        told: BuildJob | None = None
        while (job := self._builds.job(self.root, job_id)) and job.status is BuildStatus.RUNNING:
            if job != told:
                self._tell(WatchState.BUILDING, job=job, note=note)
                told, note = job, None
            if self._builds.jobs.wait(job_id, PROGRESS_SECONDS) is None:
                self._clock.wait(self._stopping, PROGRESS_SECONDS)
            if self._stopping.is_set():
                if started.is_new:
                    self._builds.jobs.cancel(job_id)
                    self._builds.jobs.wait(job_id, CLOSE_SECONDS)
                raise _Stopped
        return job

    def _told_end(self, job: BuildJob | None) -> None:
        if job is not None and job.status is BuildStatus.COMPLETED:
            self._retry_seconds = RETRY_SECONDS
            self._tell(self._resting_state, job=job, note=self._note)
            return
        words = job.error if job else "another process took over the build"
        self._tell(WatchState.RETRYING, job=job, note=f"the build failed: {words}")
        self._pause(self._retry_seconds)
        self._retry_seconds = min(2 * self._retry_seconds, RETRY_SECONDS_MAX)

    def _identity(self) -> tuple[int, int] | None:
        """Which folder the root is; None if there is none."""
        try:
            found = os.stat(self.root)  # noqa: PTH116 -- as every other stat of a tree
        except OSError:
            return None
        return (found.st_dev, found.st_ino)

    def _is_own(self, path: str) -> bool:
        """Whether it is an index file: a watcher that saw its own writing would never rest."""
        return path.startswith(f"{os.path.realpath(self._builds.folder)}/")

    def _is_own_path(self, path: str) -> bool:
        return self._is_own(f"{self.root}/{path}")

    def _tell(
        self, state: WatchState, *, job: BuildJob | None = None, note: str | None = None
    ) -> None:
        self.state = state
        self._on_event(
            WatchEvent(
                at=iso(self._clock.now()), root=str(self.root), state=state, job=job, note=note
            )
        )

    def _pause(self, seconds: float) -> None:
        self._clock.wait(self._stopping, seconds)
        self._raise_if_stopped()

    def _raise_if_stopped(self) -> None:
        if self._stopping.is_set():
            raise _Stopped


def _may_differ(file: ScannedFile, stored: KnownFile | None, *, is_told_of: bool) -> bool:
    """Whether a file is worth a build. One that could not be read is not, unless it is told that it changed:
    with every scan it would be found again."""
    if stored is None:
        return True
    if stored.outcome is FileOutcome.UNREADABLE:
        return is_told_of
    has_changed = (file.size, file.mtime_ns) != (stored.size, stored.mtime_ns)
    return has_changed or is_in_doubt(file.mtime_ns, file.ctime_ns, read_at_ns=stored.indexed_at_ns)
