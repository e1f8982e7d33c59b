"""Start a build and read its progress from any process; list and remove index files."""

import os
import random
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsuzuki.collectors.codeindex.builds import owner
from tsuzuki.collectors.codeindex.builds.builder import (
    Builder,
    BuildSettings,
    ClaimedBuild,
    OnProgress,
)
from tsuzuki.collectors.codeindex.builds.claim import claim_build
from tsuzuki.collectors.codeindex.builds.detached_build import start_process
from tsuzuki.collectors.codeindex.builds.job import (
    ENDED_JOB_SECONDS,
    BuildJob,
    BuildStatus,
    build_id,
)
from tsuzuki.collectors.codeindex.builds.jobs import BuildJobs, error_words
from tsuzuki.collectors.codeindex.index_file import (
    FOLDER_VARIABLE,
    SUFFIX,
    IndexCorrupt,
    IndexFile,
    NewerIndex,
    index_folder,
    index_path,
    set_aside,
)
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits
from tsuzuki.collectors.codeindex.lsp.settings import (
    CONFIG_VARIABLE,
    LspCommands,
    config_path,
    read_said,
    server_commands,
)
from tsuzuki.collectors.codeindex.moments import nanoseconds
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits
from tsuzuki.collectors.codeindex.queries import builds, files, meta
from tsuzuki.collectors.codeindex.queries.builds import StoredBuild
from tsuzuki.collectors.codeindex.queries.files import ListedFile
from tsuzuki.collectors.codeindex.service.index_status import IndexEntry, IndexStatus, problems_of
from tsuzuki.collectors.codeindex.tree.part import TreePart, paths_in, scan_part
from tsuzuki.collectors.codeindex.tree.roots import find_root, real_path
from tsuzuki.collectors.codeindex.watch.watch_lock import lock_path, watching_pid
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import Conflict, Fenced, NotFound, TsuzukiError, WorkFailed

__all__ = [
    "BuildJob",
    "BuildStatus",
    "Builds",
    "IndexEntry",
    "IndexStatus",
    "StartedBuild",
    "read_said",
]

START_LOOK_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class StartedBuild:
    """A build that runs: one that was started now, or the one that was running already."""

    id: str
    is_new: bool
    notes: tuple[str, ...] = ()


class Builds:
    """The builds of this process, and of others on the same trees."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        environ: Mapping[str, str] = os.environ,
        lsp_limits: LspLimits | None = None,
        workers: int | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._environ = environ
        self.folder = index_folder(environ)
        self._settings = BuildSettings(
            limits=ParseLimits(),
            workers=workers,
            lsp_limits=lsp_limits or LspLimits(),
        )
        self._chance = chance or random.SystemRandom()
        self.jobs = BuildJobs(self._clock)

    def root(self, named: str | None, *, cwd: Path = Path()) -> Path:
        """The root that is meant, usable."""
        return find_root(named, cwd=cwd, environ=self._environ)

    def start(
        self,
        root: Path,
        *,
        job_id: str | None = None,
        part: TreePart | None = None,
        lsp: LspCommands | None = None,
        paths: Sequence[str] = (),
        is_forced: bool = False,
    ) -> StartedBuild:
        """Start a build in the background, or name the one that runs. The id comes at once. With `part`, or `paths`
        of files and folders, only that is brought up to date, if the index has the rest. `lsp` are the language
        servers to use, beside those of the user's file. A forced build parses files again that did not change."""
        servers = server_commands(lsp or {}, self._environ)
        if paths:
            part = scan_part(root, paths_in(root, paths))
        wanted = job_id or build_id(self._now_ms(), self._chance)
        index = IndexFile.open(root, folder=self.folder, clock=self._clock)
        try:
            if meta.index_stats(index.connection) is None:
                part = None
            part_files = None if part is None else len(part.scan.files)
            claimed = claim_build(index, wanted, self._clock, part_files=part_files)
            if isinstance(claimed, BuildJob):
                index.close()
                return StartedBuild(id=claimed.id, is_new=False, notes=index.notes)
            settings = replace(self._settings, servers=servers, is_forced=is_forced)
            work = self._work(root, index, claimed, settings, part)
            self.jobs.create(claimed.job, work)
        except BaseException:
            index.close()
            owner.release(wanted)
            raise
        return StartedBuild(id=wanted, is_new=True, notes=index.notes)

    def start_for_watcher(self, root: Path, part: TreePart | None) -> StartedBuild:
        """The same with the id of a watcher's job."""
        wanted = self.jobs.next_watcher_id(self._now_ms())
        with suppress(IndexCorrupt):  # it is made anew
            while self.job(root, wanted) is not None:
                wanted = self.jobs.next_watcher_id(self._now_ms())
        return self.start(root, job_id=wanted, part=part)

    def start_detached(
        self,
        root: Path,
        *,
        lsp: LspCommands | None = None,
        paths: Sequence[str] = (),
        is_forced: bool = False,
    ) -> StartedBuild:
        """The same in a process of its own that outlives this one."""
        server_commands(lsp or {}, self._environ)  # what is wrong with them is said here
        paths_in(root, paths)
        with IndexFile.open(root, folder=self.folder, clock=self._clock) as index:
            notes = index.notes
        if (job := self.status(root).job) and job.status is BuildStatus.RUNNING:
            return StartedBuild(id=job.id, is_new=False, notes=notes)
        wanted = build_id(self._now_ms(), self._chance)
        environ = {FOLDER_VARIABLE: str(self.folder.absolute())}
        if CONFIG_VARIABLE in self._environ:
            environ[CONFIG_VARIABLE] = str(config_path(self._environ).absolute())
        process = start_process(
            root, wanted, environ, lsp=lsp or {}, paths=paths, is_forced=is_forced
        )
        never = threading.Event()
        while True:
            has_ended = process.poll() is not None
            job = self.status(root).job
            if job and (job.id == wanted or job.status is BuildStatus.RUNNING):
                return StartedBuild(id=job.id, is_new=job.id == wanted, notes=notes)
            if has_ended:
                raise WorkFailed(
                    "the build process exited before the build started",
                    hint="To see why, build in the foreground: tsuzuki index build",
                    code="build_not_started",
                )
            self._clock.wait(never, START_LOOK_SECONDS)

    def status(self, root: Path) -> IndexStatus:
        """How the index of a tree is; from the index file, whichever process builds."""
        index = IndexFile.open_existing(root, folder=self.folder)
        if index is None:
            path = index_path(root, self.folder)
            return IndexStatus(root=str(root), index_file=str(path), job=None, stats=None)
        with index, index.reading():
            connection = index.connection
            stored = builds.read(connection)
            counts = files.counts(connection)
            return IndexStatus(
                root=str(root),
                index_file=str(index.path),
                job=self._current(stored) if stored else None,
                stats=meta.index_stats(connection),
                outcomes=counts.outcomes,
                languages=counts.languages,
                extractors=counts.extractors,
                problems=problems_of(connection, counts),
                is_listed=not meta.unlisted_folders(connection),
            )

    def files(self, root: Path, **wanted: Any) -> list[ListedFile]:
        """Files of the index, as `queries.files.listed` narrows them; none if there is no index."""
        index = IndexFile.open_existing(root, folder=self.folder)
        if index is None:
            return []
        with index, index.reading():
            return files.listed(index.connection, **wanted)

    def job(self, root: Path, job_id: str) -> BuildJob | None:
        """A build of this process, or one that another process works on. None once it is forgotten."""
        if own := self.jobs.get(job_id):
            return own
        index = IndexFile.open_existing(root, folder=self.folder)
        if index is None:
            return None
        with index, index.reading():
            stored = builds.read(index.connection)
            if stored and stored.job.id == job_id:
                return self._current(stored)
            return builds.find_ended(index.connection, job_id, now_ns=self._now_ns())

    def _current(self, stored: StoredBuild) -> BuildJob | None:
        """The stored build while it runs and five minutes after. One whose owner died has failed when that gave
        its last sign of life."""
        now_ns = self._now_ns()
        is_alive = stored.ended_at_ns is None and owner.is_alive(stored, now_ns=now_ns)
        ended_at_ns = stored.ended_at_ns or stored.heartbeat_ns
        if is_alive:
            return stored.job
        if (now_ns - ended_at_ns) / 1e9 >= ENDED_JOB_SECONDS:
            return None
        return stored.job if stored.ended_at_ns is not None else owner.as_died(stored)

    def entries(self) -> list[IndexEntry]:
        """Every index file of the folder, by root."""
        paths = sorted(self.folder.glob(f"*{SUFFIX}")) if self.folder.is_dir() else []
        return sorted((self._entry(path) for path in paths), key=lambda entry: entry.root)

    def entry(self, root: Path) -> IndexEntry | None:
        """The index file of a tree, if there is one."""
        path = index_path(root, self.folder)
        return self._entry(path) if path.exists() else None

    def _entry(self, path: Path) -> IndexEntry:
        size = sum(one.stat().st_size for one in _parts(path) if one.exists())
        try:
            with IndexFile.open_path(path) as index, index.reading():
                connection = index.connection
                root = meta.get(connection, "root") or ""
                stats = meta.index_stats(connection)
                stored = builds.read(connection)
                job = self._current(stored) if stored else None
                is_building = job is not None and job.status is BuildStatus.RUNNING
                counts = files.counts(connection)
                symbols = files.symbol_count(connection)
        except (IndexCorrupt, NewerIndex) as problem:
            state = "newer" if isinstance(problem, NewerIndex) else "corrupt"
            return IndexEntry(
                root="", state=state, files=0, symbols=0, last_indexed_at=None, bytes=size,
                index_file=str(path),
            )  # fmt: skip
        state = "building" if is_building else "ready" if stats else "incomplete"
        return IndexEntry(
            root=root,
            state=state if Path(root).is_dir() else "root gone",
            files=sum(counts.outcomes.values()),
            symbols=symbols,
            last_indexed_at=stats.last_indexed_at if stats else None,
            bytes=size,
            index_file=str(path),
        )

    def find(self, named: str, *, cwd: Path = Path()) -> IndexEntry:
        """The index of a root, which need not exist any more; or an index file itself."""
        real = real_path(cwd / Path(named).expanduser())
        for entry in self.entries():
            if entry.root == str(real) or entry.index_file == str(real):
                return entry
        raise NotFound(
            f"there is no index of {real}",
            hint="List the indexes with: tsuzuki index ls",
            code="no_index",
        )

    def remove(self, entry: IndexEntry) -> None:
        """Remove an index file. It is refused while a build runs or the tree is watched; a build that was just
        about to write is fenced."""
        path = Path(entry.index_file)
        if (pid := watching_pid(path)) is not None:
            raise Conflict(
                f"{entry.root} is watched by {f'process {pid}' if pid else 'another process'}",
                hint="Stop it first: it would rebuild the index.",
                code="tree_watched",
            )
        with suppress(IndexCorrupt, NewerIndex), IndexFile.open_path(path) as index:
            try:
                with index.transaction(self._is_free) as connection:
                    builds.revoke(connection)
            except Fenced:
                raise Conflict(
                    f"the index of {entry.root} is being built",
                    hint="Wait for the build to end, and check it with: tsuzuki index status",
                    code="build_running",
                ) from None
        for part in (*_parts(path), lock_path(path)):
            part.unlink(missing_ok=True)

    def _is_free(self, connection: sqlite3.Connection) -> bool:
        stored = builds.read(connection)
        job = self._current(stored) if stored else None
        return job is None or job.status is not BuildStatus.RUNNING

    def _work(
        self,
        root: Path,
        index: IndexFile,
        claimed: ClaimedBuild,
        settings: BuildSettings,
        part: TreePart | None,
    ) -> Callable[[OnProgress, Callable[[], bool]], BuildJob]:
        def work(on_progress: OnProgress, stopping: Callable[[], bool]) -> BuildJob:
            def build(
                index: IndexFile, claimed: ClaimedBuild, part: TreePart | None = None
            ) -> BuildJob:
                builder = Builder(
                    claimed,
                    root=root,
                    index=index,
                    clock=self._clock,
                    settings=settings,
                    on_progress=on_progress,
                    stopping=stopping,
                )
                return _ended(builder, part)

            try:
                try:
                    return build(index, claimed, part)
                except IndexCorrupt:
                    index.close()
                    set_aside(index.path, self._clock)
                    with IndexFile.open(root, folder=self.folder) as anew:
                        again = claim_build(anew, claimed.job.id, self._clock)
                        if isinstance(again, BuildJob):
                            raise Fenced("another process now rebuilds this tree") from None
                        return build(anew, again)
            finally:
                index.close()
                owner.release(claimed.job.id)

        return work

    def _now_ns(self) -> int:
        return nanoseconds(self._clock.now())

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


def _ended(builder: Builder, part: TreePart | None) -> BuildJob:
    """A build to its end. What goes wrong is stored as the end, unless the build is not ours any more or
    the index file itself is what is wrong."""
    try:
        return builder.build(part)
    except (Fenced, IndexCorrupt):
        raise
    except Exception as problem:
        with suppress(TsuzukiError):
            return builder.fail(error_words(problem))
        raise


def _parts(path: Path) -> list[Path]:
    """An index file with its log."""
    return [Path(f"{path}{end}") for end in ("", "-wal", "-shm")]
