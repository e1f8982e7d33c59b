"""The builder: brings an index to what its tree has, changed files only.

Files are stored in batches, each in a transaction that checks the writer's token and carries progress and heartbeat. A
killed build keeps what it stored, and the next one does only the rest. Files that are gone are removed in the
transaction that completes the build.
"""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tsuzuki.collectors.codeindex.builds.job import (
    CANCELLED,
    BuildJob,
    BuildProgress,
    BuildResult,
    BuildStatus,
)
from tsuzuki.collectors.codeindex.builds.worktrees import copy_from_worktree, other_indexes
from tsuzuki.collectors.codeindex.extract import EXTRACTOR_VERSION
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits
from tsuzuki.collectors.codeindex.lsp.servers import LanguageServers
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.collectors.codeindex.moments import iso, nanoseconds
from tsuzuki.collectors.codeindex.parsing.parse import HashedFile, ParseLimits
from tsuzuki.collectors.codeindex.parsing.parsed_file import (
    TREE_SITTER,
    FileOutcome,
    FileToParse,
    Parsed,
    ParsedFile,
    SameFile,
    VanishedFile,
)
from tsuzuki.collectors.codeindex.parsing.pool import ParsePool
from tsuzuki.collectors.codeindex.queries import builds, files, meta
from tsuzuki.collectors.codeindex.queries.copies import is_empty
from tsuzuki.collectors.codeindex.queries.files import NEVER_COMPARED_NS, KnownFile
from tsuzuki.collectors.codeindex.queries.meta import IndexStats
from tsuzuki.collectors.codeindex.queries.names import NameIds
from tsuzuki.collectors.codeindex.queries.schema import make_name_indexes
from tsuzuki.collectors.codeindex.tree.doubt import is_in_doubt
from tsuzuki.collectors.codeindex.tree.file_hashes import FileHashes
from tsuzuki.collectors.codeindex.tree.git import GitListing
from tsuzuki.collectors.codeindex.tree.part import TreePart
from tsuzuki.collectors.codeindex.tree.scan import Scan, ScannedFile, scan_tree
from tsuzuki.collectors.codeindex.tree.unlisted import storable, to_mark
from tsuzuki.model.clock import Clock

COMMIT_FILES = 400
COMMIT_SECONDS = 0.4
"""Progress is told at least every half second."""

OnProgress: TypeAlias = Callable[[BuildProgress], None]
Servers: TypeAlias = Mapping[str, ServerCommand]
"""The language servers by language."""


class BuildCancelled(Exception):
    """The build was asked to stop."""


@dataclass(frozen=True, kw_only=True)
class ClaimedBuild:
    """A build that this process owns: the job as it started, and its token."""

    job: BuildJob
    token: int


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """How files are parsed: in how many processes, and for which languages a server is asked."""

    limits: ParseLimits = field(default_factory=ParseLimits)
    workers: int | None = None
    servers: Servers = field(default_factory=dict)
    lsp_limits: LspLimits = field(default_factory=LspLimits)
    is_forced: bool = False
    """Whether files are parsed again that did not change."""


class Builder:
    """One build, from the scan to its end. Of one thread."""

    def __init__(
        self,
        claimed: ClaimedBuild,
        *,
        root: Path,
        index: IndexFile,
        clock: Clock,
        settings: BuildSettings | None = None,
        on_progress: OnProgress = lambda _progress: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._claimed = claimed
        self._root = root
        self._index = index
        self._clock = clock
        self._settings = settings or BuildSettings()
        self._on_progress = on_progress
        self._stopping = stopping
        self._names = NameIds()
        self._started_seconds = clock.monotonic()
        self._committed_seconds = self._started_seconds
        self._processed = claimed.job.progress.processed
        self._total = claimed.job.progress.total
        self._updated_files = 0
        self._has_copies = False
        self._is_whole = False
        self._unlisted_folders: list[str] = []
        self._hashed: dict[str, HashedFile] = {}
        self._to_store: list[Parsed] = []
        self._vanished: set[str] = set()

    def build(self, part: TreePart | None = None) -> BuildJob:
        """Build to the end, the whole tree or a part of it that was scanned; the job as it ended. It raises
        nothing but bugs, a `Fenced` and what is wrong with the index file itself."""
        try:
            return self._build(part)
        except BuildCancelled:
            return self.fail(CANCELLED)

    def fail(self, error: str) -> BuildJob:
        """End the build as failed, if it is still ours."""
        now = self._clock.now()
        job = BuildJob(
            id=self._claimed.job.id,
            status=BuildStatus.FAILED,
            progress=self._progress(),
            started_at=self._claimed.job.started_at,
            error=error,
            failed_at=iso(now),
        )
        with self._index.transaction(self._is_ours) as connection:
            builds.end(connection, job, now_ns=nanoseconds(now))
        return job

    def _build(self, part: TreePart | None) -> BuildJob:
        limits, workers = self._settings.limits, self._settings.workers
        with ParsePool(self._root, limits, workers=workers) as pool:
            if part is None:
                part, known = self._whole_tree(pool)
            else:
                known = self._known(part)
                self._total += len(part.scan.files) - len(known)
            scan = self._storable(part.scan, known)
            self._parse(pool, scan, known)
        present = {file.path for file in scan.files}
        copied = {path for path, file in known.items() if file.indexed_at_ns == NEVER_COMPARED_NS}
        gone = {
            path
            for path in known
            if path not in present and (path in copied or not scan.may_have(path))
        }
        self._is_whole = part.paths is None
        return self._complete(gone, copied)

    def _storable(self, scan: Scan, known: dict[str, KnownFile]) -> Scan:
        """What may be stored; folders that git does not list are marked before anything of them is."""
        if not scan.unlisted_folders:
            return scan
        with self._index.transaction(self._is_ours) as connection:
            marked = meta.unlisted_folders(connection)
            self._unlisted_folders = to_mark(scan, known, marked)
            both = dict.fromkeys([*marked, *self._unlisted_folders])
            meta.put_unlisted_folders(connection, [*both])
        return storable(scan, known, marked)

    def _whole_tree(self, pool: ParsePool) -> tuple[TreePart, dict[str, KnownFile]]:
        """Scan the tree, and start from the index of another worktree if this one is empty. The index is read while
        git lists: no other process writes what a running build compares."""
        listing = GitListing(self._root)
        known = self._known()
        with self._index.reading():
            is_first = not known and is_empty(self._index.connection)
        others = other_indexes(self._root, self._index.path.parent) if is_first else []
        if is_first and not others:
            pool.start_early(len(listing.paths() or ()))
        if is_first:
            self._total = len(listing.paths() or ())
            self._commit()  # how many files there are is known long before they are parsed
        part = TreePart(scan=scan_tree(self._root, on_tick=self._tick, listing=listing))
        self._total = len(part.scan.files)
        if others:
            self._copy_and_hash(others, part.scan)
            known = self._known()
        return part, known

    def _known(self, part: TreePart | None = None) -> dict[str, KnownFile]:
        """What the index has of the tree, or of a part."""
        with self._index.reading():
            connection = self._index.connection
            return part.known(connection) if part else files.known_files(connection)

    def _copy_and_hash(self, others: list[Path], scan: Scan) -> None:
        """Take over the index of another worktree. Meanwhile the files are hashed, to be compared with it: most of
        them are the same, and no process has to be started for that."""
        paths = [file.path for file in scan.files if file.problem is None]
        with FileHashes(self._root, paths, self._settings.limits) as hashes:
            self._has_copies = copy_from_worktree(self._index, others, self._is_ours)
            if self._has_copies:
                self._hashed = hashes.wait(self._tick)

    def _parse(self, pool: ParsePool, scan: Scan, known: dict[str, KnownFile]) -> None:
        changed = self._changed(scan, known)
        self._processed = self._total - len(changed) - len(self._to_store)
        self._commit()
        with self._language_servers() as servers:
            for parsed in pool.parse(changed):
                for one in parsed:
                    complete = servers.with_symbols(one)  # ticks, and so may commit
                    self._to_store.append(complete)
                self._tick()

    def _changed(self, scan: Scan, known: dict[str, KnownFile]) -> list[FileToParse]:
        """What has to be read. What cannot be is stored as that at once."""
        changed: list[FileToParse] = []
        failed: list[FileToParse] = []
        servers, is_forced = self._settings.servers, self._settings.is_forced
        for file in scan.files:
            stored = known.get(file.path)
            if file.problem is not None:
                self._to_store.append(_unreadable(file))
            elif stored is None or is_forced or _may_differ(file, stored, servers):
                has_failed = stored is not None and stored.outcome is FileOutcome.FAILED
                to_parse = _to_parse(file, stored, servers)
                to_parse = to_parse._replace(known_hash=None) if is_forced else to_parse
                hashed = self._hashed.get(file.path)
                if hashed is not None and hashed.hash == to_parse.known_hash:
                    self._to_store.append(hashed.same)
                    continue
                (failed if has_failed else changed).append(to_parse)
        # What a language server failed on comes last: the server may be given up before the end.
        return changed + failed

    def _language_servers(self) -> LanguageServers:
        return LanguageServers(
            self._root,
            self._settings.servers,
            parse_limits=self._settings.limits,
            limits=self._settings.lsp_limits,
            tick=self._tick,
        )

    def _tick(self) -> None:
        """Between two files: stop if asked to, and commit if it is time."""
        if self._stopping():
            raise BuildCancelled
        since_seconds = self._clock.monotonic() - self._committed_seconds
        if len(self._to_store) >= COMMIT_FILES or since_seconds >= COMMIT_SECONDS:
            self._commit()

    def _commit(self) -> None:
        """Store what was parsed, with progress and heartbeat."""
        now_ns = nanoseconds(self._clock.now())
        batch, self._to_store = self._to_store, []
        self._processed += len(batch)
        with self._index.transaction(self._is_ours) as connection:
            self._store(connection, batch, now_ns)
            builds.report(connection, self._progress(), now_ns=now_ns)
        self._committed_seconds = self._clock.monotonic()
        self._on_progress(self._progress())

    def _store(self, connection: sqlite3.Connection, batch: list[Parsed], now_ns: int) -> None:
        changed = [parsed for parsed in batch if isinstance(parsed, ParsedFile)]
        same = [parsed for parsed in batch if isinstance(parsed, SameFile)]
        files.put_files(connection, changed, names=self._names, now_ns=now_ns)
        files.confirm_files(connection, same, now_ns=now_ns)
        self._updated_files += sum(not one.outcome.keeps_old_symbols for one in changed)
        if self._has_copies:
            self._updated_files += len(same)  # new to this index, though it was not parsed for it
        self._vanished.update(one.path for one in batch if isinstance(one, VanishedFile))

    def _complete(self, gone: set[str], copied: set[str]) -> BuildJob:
        """The last transaction: what is left to store, what is gone, the IndexStats and the end. What was copied
        from another worktree and never compared with a file of this one does not stay."""
        batch, self._to_store = self._to_store, []
        self._processed = self._total
        with self._index.transaction(self._is_ours) as connection:
            now = self._clock.now()
            self._store(connection, batch, nanoseconds(now))
            vanished = self._really_vanished() | (self._vanished & copied)
            removed = files.remove_files(connection, gone | vanished)
            make_name_indexes(connection)
            stats = IndexStats(total=files.symbol_count(connection), last_indexed_at=iso(now))
            meta.put_index_stats(connection, stats)
            if self._is_whole:
                meta.put_unlisted_folders(connection, self._unlisted_folders)
            job = BuildJob(
                id=self._claimed.job.id,
                status=BuildStatus.COMPLETED,
                progress=self._progress(),
                started_at=self._claimed.job.started_at,
                completed_at=iso(now),
                result=BuildResult(
                    updated_files=self._updated_files,
                    # What was copied and is not in this tree never was.
                    removed_files=0 if self._has_copies else removed,
                    total_indexed_symbols=stats.total,
                    last_indexed_at=stats.last_indexed_at,
                ),
            )
            builds.end(connection, job, now_ns=nanoseconds(now))
        self._on_progress(job.progress)
        return job

    def _really_vanished(self) -> set[str]:
        """Without what is there again: git removes a file before it writes it anew. The next build reads it."""
        found = {path: self._root / path for path in self._vanished}
        return {path for path, file in found.items() if file.is_symlink() or not file.is_file()}

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        return builds.has_token(connection, self._claimed.token)

    def _progress(self) -> BuildProgress:
        seconds = self._clock.monotonic() - self._started_seconds
        rate = self._processed / seconds if seconds > 0 else 0.0
        return BuildProgress(
            processed=min(self._processed, self._total), total=self._total, rate=round(rate, 1)
        )


def _may_differ(file: ScannedFile, stored: KnownFile, servers: Servers) -> bool:
    return (
        (file.size, file.mtime_ns) != (stored.size, stored.mtime_ns)
        or not _is_current(stored, servers)
        or stored.outcome is FileOutcome.UNREADABLE
        or is_in_doubt(file.mtime_ns, file.ctime_ns, read_at_ns=stored.indexed_at_ns)
    )


def _is_current(stored: KnownFile, servers: Servers) -> bool:
    """Whether the extractor that the file's language has now made what is stored."""
    server = servers.get(stored.language or "")
    wanted = server.extractor if server else TREE_SITTER
    if stored.outcome is FileOutcome.FAILED:  # what a server failed on is tried again
        wanted = TREE_SITTER
    return stored.extractor_version == EXTRACTOR_VERSION and stored.extractor == wanted


def _to_parse(file: ScannedFile, stored: KnownFile | None, servers: Servers) -> FileToParse:
    if stored is None:
        return FileToParse(path=file.path)
    return FileToParse(
        path=file.path,
        known_hash=stored.hash if _is_current(stored, servers) else None,
        has_failed=stored.outcome is FileOutcome.FAILED and stored.extractor == TREE_SITTER,
    )


def _unreadable(file: ScannedFile) -> ParsedFile:
    return ParsedFile(
        path=file.path,
        size=file.size,
        mtime_ns=file.mtime_ns,
        outcome=FileOutcome.UNREADABLE,
        error=file.problem,
    )
