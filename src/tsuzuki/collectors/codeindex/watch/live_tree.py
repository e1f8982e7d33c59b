"""The files of a watched tree, kept up to date by notifications, so that an answer need not walk the tree.

A walk compares every file with the index. From then on only files that a notification named are looked at, until the
index has them as they are. The tree is walked again whenever it cannot be said what changed: after lost events, a
change of the rules that ignore files, another index, too many changes, and after some minutes in any case.

A notification is in the queue before the call that changed a file returns. `catch_up` reads the queue until it is
empty, so it knows of every change made before it.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tsuzuki.collectors.codeindex.answers.changed_files import (
    TreeChanges,
    TreeWalk,
    changes_of_walk,
    compared,
    suspects_of,
    walk_tree,
)
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.moments import nanoseconds
from tsuzuki.collectors.codeindex.queries import builds, meta
from tsuzuki.collectors.codeindex.queries import files as stored_files
from tsuzuki.collectors.codeindex.tree.files import RealFolders
from tsuzuki.collectors.codeindex.tree.git_folder import git_folder_of
from tsuzuki.collectors.codeindex.tree.part import PATHS_MAX, scan_part
from tsuzuki.collectors.codeindex.tree.scan import ScannedFile, scanned_file
from tsuzuki.collectors.codeindex.watch.list_rules import RuleFiles, rule_files
from tsuzuki.collectors.codeindex.watch.notifier import Changed, Notifier
from tsuzuki.model.clock import Clock

WALK_SECONDS = 300.0
"""After so long the tree is walked again. A few changes give no notification: through a memory mapping whose file was
closed, or of ignore rules that only git's own configuration names."""


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What a walk found, and on what that rests."""

    walk_number: int
    index_id: str
    rules: RuleFiles
    walked_seconds: float
    scanned: Mapping[str, None]
    listed: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class _Moment:
    """What was known when a question caught up, before it read the index. Another question that read a later state of
    the index may find files clean meanwhile that are not so in the state of this one."""

    mark: int
    walk_number: int | None
    dirty: frozenset[str]


class LiveTree:
    """Every method may be called from any thread.

    Each notification has a number, and `mark` is the number of the last one. `_dirty` are the files and folders that
    the index may not have as they are, each with the number of its last notification.
    """

    def __init__(self, root: Path, notifier: Notifier, clock: Clock) -> None:
        self._root = root
        self._notifier = notifier
        self._clock = clock
        self._lock = threading.Lock()
        self._identity = _identity(root)
        self._known: _Known | None = None
        self._dirty: dict[str, int] = {}
        self._mark = 0
        self._lost_mark = 0
        self._walks_count = 0
        notifier.on_changed = self._note

    def catch_up(self) -> Callable[[FreshFiles], TreeChanges] | None:
        """Take note of every change until now: what compares the tree with the index from here on. To be called before
        the index is read. None if notifications cannot be relied upon."""
        if not self._notifier.drain() or not self._notifier.is_complete:
            return None
        if _identity(self._root) != self._identity:
            return None
        with self._lock:
            moment = _Moment(
                mark=self._mark,
                walk_number=self._known.walk_number if self._known else None,
                dirty=frozenset(self._dirty),
            )
        return partial(self._changes, since=moment)

    def _changes(self, files: FreshFiles, *, since: _Moment) -> TreeChanges:
        """Compare the tree with the index, as of that moment or later."""
        with self._lock:
            found = self._changes_since_walk(files, since)
        return self._walked(files, since.mark) if found is None else found

    def _note(self, changed: Changed) -> None:
        with self._lock:
            self._mark += 1
            self._dirty.update(dict.fromkeys(changed.paths, self._mark))
            is_unclear = changed.whole or changed.later or changed.has_rules
            if is_unclear or len(self._dirty) > PATHS_MAX:
                self._lose()

    def _lose(self) -> None:
        """Only a walk can tell what changed until now."""
        self._known, self._lost_mark = None, self._mark
        self._dirty.clear()

    def _changes_since_walk(self, files: FreshFiles, since: _Moment) -> TreeChanges | None:
        """None if the tree has to be walked."""
        known = self._known
        if known is None or known.walk_number != since.walk_number or files.connection is None:
            return None
        if not self._still_holds(known, files):
            return None
        looked_at = self._looked_at(known, since.dirty | self._dirty.keys())
        if looked_at is None:
            self._lose()
            return None
        known, present = looked_at
        self._known = known
        stored = {
            file.path: row
            for file in present
            if (row := stored_files.known_file(files.connection, file.path))
        }
        suspects = suspects_of(present, stored)
        # A running build may have read a file before it changed, and store that later.
        if builds.is_idle(files.connection):
            self._forget_until(since.mark)
        self._keep_dirty(suspects, present, since.mark)
        if len(self._dirty) > PATHS_MAX:
            self._lose()
        found = TreeChanges(scanned=known.scanned.keys(), listed=known.listed)
        return compared(files, found, suspects, stored)

    def _forget_until(self, mark: int) -> None:
        self._dirty = {path: number for path, number in self._dirty.items() if number > mark}

    def _keep_dirty(
        self, suspects: Iterable[ScannedFile], files: Iterable[ScannedFile], mark: int
    ) -> None:
        """Look at suspects again with the next question, and always at files with a second name, which may be in a
        folder that is not watched."""
        for path in _to_look_at(suspects, files):
            self._dirty.setdefault(path, mark)

    def _still_holds(self, known: _Known, files: FreshFiles) -> bool:
        if files.connection is None or meta.get(files.connection, "id") != known.index_id:
            return False
        is_recent = self._clock.monotonic() - known.walked_seconds < WALK_SECONDS
        return is_recent and known.rules.are_unchanged()

    def _looked_at(
        self, known: _Known, dirty: Iterable[str]
    ) -> tuple[_Known, list[ScannedFile]] | None:
        """Look at what is dirty: the tree with it, and the files that are there. None if only a walk can tell."""
        folders = RealFolders(os.fspath(self._root))
        present: dict[str, ScannedFile] = {}
        gone: set[str] = set()
        unclear: list[str] = []
        for path in dirty:
            if path not in known.scanned:
                unclear.append(path)
                continue
            status = self._status(path) if folders.have(path) else None
            if status is None:
                gone.add(path)
            elif stat.S_ISREG(status.st_mode):
                present[path] = scanned_file(path, status)
            else:
                unclear.append(path)
        if unclear:
            part = scan_part(self._root, unclear)
            if part is None or part.scan.unread_folders:
                return None
            present |= {file.path: file for file in part.scan.files}
            gone |= _at_or_below(known.scanned, unclear)
        with_files = _with_files(known, present, gone - present.keys())
        # Where git lists nothing, a walk goes by rules of its own.
        has_lost_list = bool(known.listed) and not with_files.listed
        return None if has_lost_list else (with_files, [*present.values()])

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self._root / path)
        except OSError:
            return None

    def _walked(self, files: FreshFiles, mark: int) -> TreeChanges:
        started = self._clock.now()
        started_seconds = self._clock.monotonic()
        walk = walk_tree(files)
        rules = rule_files(self._root, walk.scan.repositories)
        if files.connection is not None and self._is_covered(walk):
            known = _Known(
                walk_number=0,
                index_id=meta.get(files.connection, "id") or "",
                rules=rules,
                walked_seconds=started_seconds,
                scanned=dict.fromkeys(file.path for file in walk.readable),
                listed=frozenset(walk.scan.listed),
            )
            is_idle = builds.is_idle(files.connection)
            if is_idle and not rules.changed_since(nanoseconds(started)):
                self._begin(known, walk, mark)
        return changes_of_walk(files, walk)

    def _is_covered(self, walk: TreeWalk) -> bool:
        """Whether every file lies in a folder that is watched. A repository in which git lists nothing, or about which
        it does not answer, is none: later it is scanned in another way."""
        if not walk.scan.listed and git_folder_of(self._root) is not None:
            return False
        if walk.scan.unlisted_folders:
            return False
        folders = {file.path.rpartition("/")[0] for file in walk.readable}
        return not walk.scan.unread_folders and folders <= self._notifier.folders

    def _begin(self, known: _Known, walk: TreeWalk, mark: int) -> None:
        """Go on from a walk that began after `mark`, unless events were lost meanwhile."""
        dirty = _to_look_at(walk.suspects, walk.readable)
        with self._lock:
            if self._lost_mark > mark or len(dirty) > PATHS_MAX:
                return
            self._walks_count += 1
            self._known = replace(known, walk_number=self._walks_count)
            self._forget_until(mark)
            self._keep_dirty(walk.suspects, walk.readable, mark)


def _to_look_at(suspects: Iterable[ScannedFile], files: Iterable[ScannedFile]) -> set[str]:
    return {file.path for file in suspects} | {file.path for file in files if file.links > 1}


def _at_or_below(scanned: Iterable[str], paths: Iterable[str]) -> set[str]:
    asked = {*paths}
    starts = tuple(f"{path}/" for path in asked)
    return {path for path in scanned if path in asked or path.startswith(starts)}


def _with_files(known: _Known, present: Mapping[str, ScannedFile], gone: set[str]) -> _Known:
    """A new one if files came or went: others may be reading the old one."""
    new = [path for path in present if path not in known.scanned]
    if not new and not gone:
        return known
    scanned = {path: None for path in known.scanned if path not in gone} | dict.fromkeys(new)
    listed = (known.listed - gone) | frozenset(new if known.listed else ())
    return replace(known, scanned=scanned, listed=listed)


def _identity(root: Path) -> tuple[int, int] | None:
    """Which folder the root is; None if there is none."""
    with suppress(OSError):
        found = os.stat(root)  # noqa: PTH116 -- as every other stat of a tree
        return (found.st_dev, found.st_ino)
    return None
