"""What changed in a tree: from notifications of the system or, where they cannot be had, by polling.

A source may tell of too much, never of too little: where it cannot be sure that it was told of everything, it asks for
a scan of the whole tree.
"""

import os
import platform
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from tsuzuki.collectors.codeindex.answers.git_state import git_folder_of
from tsuzuki.collectors.codeindex.tree_part import PATHS_MAX, RULE_FILES
from tsuzuki.collectors.codeindex.watch.folders import watched_folders
from tsuzuki.model.clock import Clock

STEP_MS = 15
"""A burst is over when nothing came for so long."""

BURST_MS = 200
ADDED, DELETED = 1, 3
OPEN_ATTEMPTS_MAX = 5
POLL_SECONDS = 2.0
POLL_SHARE = 0.1
"""A scan takes at most this share of the time."""

LIMIT_HINT = "On Linux, raise fs.inotify.max_user_watches and fs.inotify.max_user_instances."
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

    def close(self) -> None:
        """Stop. Nothing is left behind."""


class NotificationsRefused(Exception):
    """The system gives no notifications, as when a limit is reached. The message says why."""


class Notifier:
    """Notifications of the system, for the folders of a tree that are not ignored.

    On Linux each folder is watched by itself, because a recursive watch follows links and counts every ignored folder.
    A folder that appears makes a new set of watches; the old one is given up only when the new one is complete.
    """

    def __init__(self, root: Path, *, stopping: threading.Event, is_own: Callable[[str], bool]):
        self._root = root
        self._top = f"{os.fspath(root)}/"
        self._stopping = stopping
        self._is_own = is_own
        self._is_recursive = platform.system() != "Linux"
        self._folders: set[str] = set()
        self._git_folder = git_folder_of(root)
        self._unread: set[tuple[int, str]] = set()
        self._notify = self._opened(None)

    def next(self, seconds: float) -> Changed:
        if self._unread:
            found, self._unread = self._unread, set()
            return self._taken(found)
        timeout_ms = max(int(seconds * 1000), 1)
        seen = self._notify.watch(BURST_MS, STEP_MS, timeout_ms, self._stopping)
        return Changed() if isinstance(seen, str) else self._taken(seen)

    def _taken(self, found: set[tuple[int, str]]) -> Changed:
        """What one burst means. Folders that came with it are watched."""
        paths = {path.removeprefix(self._top) for _, path in found if self._is_of_tree(path)}
        for kind, path in found:
            if kind == DELETED:
                self._forget(path.removeprefix(self._top))
        added = {path.removeprefix(self._top) for kind, path in found if kind == ADDED}
        self._watch_more([*filter(self._is_folder, added & paths)])
        return Changed(
            paths=frozenset(paths),
            whole=len(paths) > PATHS_MAX,
            later=any(self._is_git_file(path) for _, path in found),
        )

    def renew(self) -> None:
        git_folder = git_folder_of(self._root)
        is_same = git_folder == self._git_folder
        self._git_folder = git_folder
        if not is_same or not watched_folders(self._root) <= self._folders:
            self._reopen(None)

    def close(self) -> None:
        self._notify.close()

    def _is_of_tree(self, path: str) -> bool:
        is_inside = path.startswith(self._top) and not self._is_git_file(path)
        return is_inside and "/.git/" not in path and not self._is_own(path)

    def _is_git_file(self, path: str) -> bool:
        folder = self._git_folder
        return folder is not None and path.startswith(f"{folder}/") and Path(path).name in GIT_FILES

    def _is_folder(self, path: str) -> bool:
        folder = self._root / path
        return folder.name != ".git" and folder.is_dir() and not folder.is_symlink()

    def _forget(self, folder: str) -> None:
        if folder in self._folders:
            inside = f"{folder}/"
            self._folders = {
                one for one in self._folders if one != folder and not one.startswith(inside)
            }

    def _watch_more(self, appeared: list[str]) -> None:
        """Watch folders that appeared, unless they are ignored."""
        if appeared and not self._is_recursive and watched_folders(self._root, appeared):
            self._reopen(appeared)

    def _reopen(self, only: list[str] | None) -> None:
        """New watches for the old ones. What those saw until then is told next."""
        old, self._notify = self._notify, self._opened(only)
        seen = old.watch(STEP_MS, 1, STEP_MS, None)
        old.close()
        if not isinstance(seen, str):
            self._unread |= seen

    def _opened(self, only: list[str] | None) -> RustNotify:
        """Watches on all folders, with those that appeared while they were set."""
        for _ in range(OPEN_ATTEMPTS_MAX):
            folders = self._folders | watched_folders(self._root, only)
            try:
                notify = self._watches(folders)
            except (FileNotFoundError, PermissionError, NotADirectoryError):
                self._folders = {one for one in self._folders if _can_enter(self._root / one)}
                continue
            self._folders = folders
            if self._is_recursive or watched_folders(self._root, only) <= folders:
                return notify
            notify.close()
        raise NotificationsRefused("its folders change too fast")

    def _watches(self, folders: set[str]) -> RustNotify:
        paths = [os.fspath(self._root / folder) for folder in sorted(folders)]
        if self._is_recursive:
            paths = [os.fspath(self._root)]
        if self._git_folder is not None:
            rules = self._git_folder / "info"
            paths += [os.fspath(one) for one in (self._git_folder, rules) if one.is_dir()]
        try:
            return RustNotify(paths, False, False, 0, self._is_recursive, False)
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            raise
        except (OSError, WatchfilesRustInternalError) as problem:
            raise NotificationsRefused(f"{_words(problem)}. {LIMIT_HINT}") from None


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

    def close(self) -> None:
        """Nothing is held."""


def _can_enter(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)


def _words(problem: Exception) -> str:
    """Without what the library tells of its insides."""
    return str(problem).partition(" about [")[0].rstrip(".")
