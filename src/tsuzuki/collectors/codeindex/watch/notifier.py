"""What changed in a tree: from notifications of the system or, where they cannot be had, by polling.

A source may tell of too much, never of too little: where it cannot be sure that it was told of everything, it asks for
a scan of the whole tree.
"""

import errno
import os
import select
import threading
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tsuzuki.collectors.codeindex.tree.git import git_ignored_paths
from tsuzuki.collectors.codeindex.tree.git_folder import git_folder_of
from tsuzuki.collectors.codeindex.tree.part import PATHS_MAX, RULE_FILES
from tsuzuki.collectors.codeindex.tree.scan import is_repository_of_its_own
from tsuzuki.collectors.codeindex.tree.walk import walk
from tsuzuki.collectors.codeindex.watch.inotify import (
    CREATE,
    DELETE,
    IGNORED,
    IS_FOLDER,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    UNMOUNT,
    Inotify,
    InotifyEvent,
    MountChanges,
    is_local,
)
from tsuzuki.model.clock import Clock

IGNORED_AS_A_WHOLE = "./"


def watched_folders(root: Path, only: Sequence[str] | None = None) -> set[str]:
    """Relative to the root, which is the empty path. `only` are folders: they and what lies below them."""
    ignored = git_ignored_paths(root, only or (".",))
    if ignored is None or IGNORED_AS_A_WHOLE in ignored:
        entered: list[str] = []
        for _path in walk(root, [], only=only, entered=entered):
            pass
        return {folder for folder in entered if _is_below(folder, only)}
    starts = [""] if only is None else [folder for folder in only if f"{folder}/" not in ignored]
    return {folder for start in starts for folder in _entered(root, start, {*ignored})}


def _is_below(folder: str, only: Sequence[str] | None) -> bool:
    return only is None or any(folder == one or folder.startswith(f"{one}/") for one in only)


def _entered(root: Path, start: str, ignored: set[str]) -> Iterator[str]:
    """A folder and those below it."""
    to_enter = [start]
    while to_enter:
        folder = to_enter.pop()
        try:
            with os.scandir(root / folder) as entries:
                below = [one for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield folder
        for entry in below:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name == ".git" or f"{path}/" in ignored:
                continue
            if not os.path.lexists(root / path / ".git"):
                to_enter.append(path)
            elif is_repository_of_its_own(root / path):
                yield from (f"{path}/{one}".rstrip("/") for one in watched_folders(root / path))


STEP_MS = 15
"""A burst is over when nothing came for so long."""

BURST_MS = 200
OPEN_ATTEMPTS_MAX = 5
WAKE_SECONDS = 0.1
POLL_SECONDS = 2.0
POLL_SHARE = 0.1
"""A scan takes at most this share of the time."""

LIMITS = {
    errno.ENOSPC: "the limit of watched folders is reached",
    errno.EMFILE: "the limit of inotify instances is reached",
}
LIMIT_HINT = "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances."
GIT_FILES = frozenset({"index", "exclude"})
"""They decide which files git lists: `git add --force` makes an ignored file part of the tree."""


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Files and folders, relative to the root. `whole` asks for a scan of the whole tree, `later` for one that
    can wait a moment."""

    paths: frozenset[str] = frozenset()
    whole: bool = False
    later: bool = False

    @property
    def has_rules(self) -> bool:
        """Whether rules that ignore files are among it."""
        return any(path.rpartition("/")[2] in RULE_FILES for path in self.paths)

    def __bool__(self) -> bool:
        return bool(self.paths) or self.whole or self.later

    def __or__(self, other: "Changed") -> "Changed":
        paths = self.paths | other.paths
        return Changed(
            paths=paths,
            whole=self.whole or other.whole or len(paths) > PATHS_MAX,
            later=self.later or other.later,
        )


class ChangeSource(Protocol):
    """Where a watcher learns of changes. Of one thread."""

    def next(self, seconds: float) -> Changed:
        """Wait for changes, at most so long. A burst of them is told at once."""

    def renew(self) -> None:
        """The rules that ignore files changed: follow the tree by the new ones."""

    def wake(self) -> None:
        """Let `next` return, in its thread."""

    def close(self) -> None:
        """Stop. Nothing is left behind."""


class NotificationsRefused(Exception):
    """The system gives no notifications, as when a limit is reached. The message says why."""


class Notifier:
    """Notifications of the system, for the folders of a tree that are not ignored.

    Each folder is watched by itself, because ignored ones may be more than the system can watch. `drain` may be called
    from any thread; everything else is of the watcher's.
    """

    def __init__(self, root: Path, *, stopping: threading.Event, is_own: Callable[[str], bool]):
        self.on_changed: Callable[[Changed], None] = lambda _changed: None
        """Called with every change, in the thread that read it, before `next` returns it."""

        self.is_complete = True
        """Whether notifications tell of every change: not on a network file system, or if a folder is unreadable."""

        self._root = root
        self._top = f"{os.fspath(root)}/"
        self._stopping = stopping
        self._is_own = is_own
        self._lock = threading.RLock()
        self._is_closed = False
        self._refusal: NotificationsRefused | None = None
        self._watches: dict[int, str] = {}
        self._folders: set[str] = set()
        self._devices: set[int] = set()
        self._git_folder = git_folder_of(root)
        self._unread = Changed()
        self._inotify, self._mounts, self._wake = self._opened()
        self._poll = select.poll()
        for descriptor in (self._inotify.fileno(), self._wake):
            self._poll.register(descriptor, select.POLLIN)
        try:
            self._watch_git()
            self._watch(None)
        except BaseException:
            self.close()
            raise

    @property
    def folders(self) -> Set[str]:
        """The folders that are watched, relative to the root."""
        return self._folders

    def next(self, seconds: float) -> Changed:
        if not self._unread:
            self._poll.poll(int(seconds * 1000))
        self.drain()
        changed = self._taken()
        for _ in range(BURST_MS // STEP_MS):
            if not changed or self._stopping.wait(STEP_MS / 1000):
                break
            self.drain()
            if not (more := self._taken()):
                break
            changed |= more
        return changed

    def wake(self) -> None:
        """Let `next` return. While another thread reads notifications it is left to that one."""
        if self._lock.acquire(timeout=WAKE_SECONDS):
            try:
                if not self._is_closed:
                    os.eventfd_write(self._wake, 1)
            finally:
                self._lock.release()

    def drain(self) -> bool:
        """Take note of every change made until now; whether notifications can be had at all."""
        with self._lock:
            if self._is_closed or self._refusal is not None:
                return False
            events = self._inotify.read()
            try:
                changed = self._understood(events) if events else Changed()
                if self._mounts.seen():
                    self._watch_anew()
                    changed |= Changed(whole=True)
            except NotificationsRefused as refusal:
                self._refusal, changed = refusal, Changed(whole=True)
            if changed:
                self._unread |= changed
                self.on_changed(changed)
                self.wake()
            return self._refusal is None

    def renew(self) -> None:
        with self._lock:
            before = len(self._folders)
            self._git_folder = git_folder_of(self._root)
            self._watch_git()
            self._watch(None)
            if len(self._folders) > before:  # what happened in them until now is not known
                self.on_changed(Changed(whole=True))

    def close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._inotify.close()
                self._mounts.close()
                os.close(self._wake)

    def _taken(self) -> Changed:
        """What was not told so far. Raises if notifications were refused meanwhile."""
        with self._lock:
            if self._refusal is not None:
                raise self._refusal
            with suppress(BlockingIOError):
                os.eventfd_read(self._wake)
            changed, self._unread = self._unread, Changed()
            return changed

    def _understood(self, events: list[InotifyEvent]) -> Changed:
        """What events mean. Folders that came with them are watched."""
        paths: set[str] = set()
        appeared: list[str] = []
        is_lost = has_git_files = False
        for event in events:
            is_lost |= bool(event.mask & (OVERFLOW | UNMOUNT))
            folder = self._watches.get(event.watch)
            if event.mask & IGNORED:
                self._drop(event.watch)
            if folder is None or not event.name:
                continue
            path = f"{folder}/{event.name}"
            has_git_files |= self._is_git_file(path)
            if not self._is_of_tree(path):
                continue
            relative = path.removeprefix(self._top)
            paths.add(relative)
            if event.mask & IS_FOLDER and event.mask & (DELETE | MOVED_FROM):
                self._forget(path)
            if event.mask & IS_FOLDER and event.mask & (CREATE | MOVED_TO):
                appeared.append(relative)
        if is_lost:
            self._watch_anew()
        elif folders := [*filter(self._is_folder, appeared)]:
            self._watch(folders)
        return Changed(
            paths=frozenset(paths),
            whole=is_lost or len(paths) > PATHS_MAX,
            later=has_git_files,
        )

    def _is_of_tree(self, path: str) -> bool:
        is_inside = path.startswith(self._top) and not self._is_git_file(path)
        return is_inside and "/.git/" not in path and not self._is_own(path)

    def _is_git_file(self, path: str) -> bool:
        folder = self._git_folder
        return folder is not None and path.startswith(f"{folder}/") and Path(path).name in GIT_FILES

    def _is_folder(self, path: str) -> bool:
        folder = self._root / path
        return folder.name != ".git" and folder.is_dir() and not folder.is_symlink()

    def _watch(self, only: list[str] | None) -> None:
        """Watch all folders, or those below some, with those that appear meanwhile."""
        refused: set[str] = set()
        for _ in range(OPEN_ATTEMPTS_MAX):
            new = watched_folders(self._root, only) - self._folders - refused
            if not new:
                return
            refused |= {folder for folder in new if not self._added(folder)}
        raise NotificationsRefused("its folders change too quickly")

    def _watch_anew(self) -> None:
        """Watch all folders, also those that may be others now by the same name. The rest keep their watches."""
        self._folders.clear()
        self._watch(None)

    def _added(self, folder: str) -> bool:
        """Watch a folder of the tree; false if it cannot be read, or is gone."""
        path = os.fspath(self._root / folder) if folder else os.fspath(self._root)
        try:
            self._add(path)
            device = os.lstat(path).st_dev
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError:
            self.is_complete = False
            return False
        self._folders.add(folder)
        if device not in self._devices:
            self._devices.add(device)
            self.is_complete &= is_local(path)
        return True

    def _watch_git(self) -> None:
        """Watch where git keeps the list of files and its own rules."""
        if self._git_folder is None:
            return
        for folder in (self._git_folder, self._git_folder / "info"):
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                self._add(os.fspath(folder))

    def _add(self, path: str) -> None:
        try:
            self._watches[self._inotify.add(path)] = path
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            raise
        except OSError as problem:
            raise _refused(problem) from None

    def _forget(self, path: str) -> None:
        """A folder went, with those in it. If one of them is at another place already, it has that path here."""
        inside = f"{path}/"
        for watch, watched in [*self._watches.items()]:
            if watched == path or watched.startswith(inside):
                self._inotify.remove(watch)
                self._drop(watch)

    def _drop(self, watch: int) -> None:
        path = self._watches.pop(watch, None)
        if path is not None:
            self._folders.discard(f"{path}/".removeprefix(self._top).rstrip("/"))

    def _opened(self) -> tuple[Inotify, MountChanges, int]:
        with ExitStack() as on_error:
            try:
                mounts = MountChanges(os.fspath(self._root))
                on_error.callback(mounts.close)
                inotify = Inotify()
                on_error.callback(inotify.close)
                wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            except OSError as problem:
                raise _refused(problem) from None
            on_error.pop_all()
            return inotify, mounts, wake


def _refused(problem: OSError) -> NotificationsRefused:
    words = LIMITS.get(problem.errno or 0, problem.strerror or str(problem))
    return NotificationsRefused(f"{words}. {LIMIT_HINT}")


class Polling:
    """No notifications: a scan of the whole tree every few seconds, less often if it takes long."""

    def __init__(self, clock: Clock, *, stopping: threading.Event) -> None:
        self._clock = clock
        self._stopping = stopping
        self._told_at = clock.monotonic()
        self._due_at: float | None = None

    def next(self, seconds: float) -> Changed:
        now = self._clock.monotonic()
        if self._due_at is None:  # what was told took until now to look at
            self._due_at = now + max(POLL_SECONDS, (now - self._told_at) / POLL_SHARE)
        self._clock.wait(self._stopping, min(seconds, self._due_at - now))
        now = self._clock.monotonic()
        if now < self._due_at:
            return Changed()
        self._told_at, self._due_at = now, None
        return Changed(whole=True)

    def renew(self) -> None:
        """A scan goes by the rules of its moment."""

    def wake(self) -> None:
        """It waits for the end of the watcher itself."""

    def close(self) -> None:
        """Nothing is held."""
