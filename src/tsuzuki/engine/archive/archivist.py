"""Retention: moves old logs to the archive and deletes old runs, so that the database stays small.

A log moves in three steps: write its lines to the archive, store the archive's ref in the run, delete the rows.
A crash may fall after any step: each is idempotent, and the next round goes on from what it finds. A reader
reads the rows first and the run's ref after that: while there is no ref, the rows were complete.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, zip_longest

from tsuzuki.engine.archive.format import DamagedLog
from tsuzuki.engine.archive.log_archive import LogArchive
from tsuzuki.engine.log import log
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError, NotFound
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import logs, pruning
from tsuzuki.store.leadership import Term
from tsuzuki.store.logs import LogLine, StoredLog
from tsuzuki.store.sql.database import Database

SCANNED_MAX = 50
"""Runs with log rows that one tick checks, and logs that it archives, at most."""

PRUNED_MAX = 200
"""Runs that one tick deletes, at most."""

GONE_WORKER_DAYS = 1
"""How long a worker that has left is listed."""

GONE_WORKERS_MAX = 1_000
"""Workers that one tick deletes, at most. A foreground command in a crontab leaves one each time, and the leader's poll
reads all that are there."""

PAGE_LINES = 500
SLICE_LINES = 2_000
SLICE_PAUSE_SECONDS = 0.01
"""A long log is deleted in slices with pauses in between, so that heartbeats and moves get the write lock."""


@dataclass(kw_only=True)
class Archived:
    """What one tick did; `more` if the next tick should follow at once."""

    runs: int = 0
    lines: int = 0
    pruned: int = 0
    more: bool = False


class Archivist:
    """One of the leader's duties, in a loop of its own because an archive may be slow."""

    def __init__(
        self,
        *,
        database: Database,
        settings: Callable[[], EngineSettings],
        archive: LogArchive | None,
        clock: Clock,
    ) -> None:
        self._database = database
        self._settings = settings
        self._archive = archive
        self._clock = clock
        self._scanned_id = 0

    def tick(self, term: Term) -> Archived:
        """Archive some old logs and delete some old runs. Without an archive, logs stay in the database;
        an archive that fails does not keep old runs from being deleted."""
        archived = Archived()
        try:
            if self._archive is not None:
                self._archive_logs(term, self._archive, archived)
        finally:
            self._prune(term, archived)
            self._prune_workers(term, archived)
            self._database.shorten_wal()
        return archived

    # --- archiving ------------------------------------------------------------------------------

    def _archive_logs(self, term: Term, archive: LogArchive, archived: Archived) -> None:
        """Archive the logs among the next runs with rows. A run whose log cannot be archived is passed over
        and tried again when the scan starts over, so that it does not block the others."""
        with self._database.read() as connection:
            age = timedelta(days=self._settings().log_retention_days_db)
            finished_before = self._database.now(connection) - age
            stored = logs.stored(
                connection,
                created_before=finished_before,
                after_id=self._scanned_id,
                limit=SCANNED_MAX,
            )
        for one in stored:
            self._scanned_id = one.run_id
            if not one.is_old(finished_before):
                continue
            if not self._ensure_archived(term, archive, one):
                return
            deleted = self._delete_lines(term, [one.run_id])
            archived.lines += deleted
            archived.runs += bool(deleted)
        if len(stored) < SCANNED_MAX:
            self._scanned_id = 0
        else:
            archived.more = True

    def _ensure_archived(self, term: Term, archive: LogArchive, one: StoredLog) -> bool:
        """Have the lines in the archive and its ref in the run. False if another process leads."""
        if one.finished_at is None or pruning.is_marked(one.log_ref):
            return True  # the run is deleted or about to be: its lines cannot be read any more
        if one.log_ref is not None:
            if self._has_all_lines(archive, one.log_ref, one.run_id):
                return True
            log.warning("archived log incomplete, rewriting", run=one.run_id, ref=one.log_ref)
        ref = archive.write(one.run_id, one.finished_at, self._lines(one.run_id))
        with self._database.write() as connection:
            return logs.set_ref(connection, term=term, log=one, ref=ref)

    def _has_all_lines(self, archive: LogArchive, ref: str, run_id: int) -> bool:
        """Whether the archive has every line that is still in the table, unchanged. It may have more: the
        rows of a long log are deleted in slices, the oldest first."""
        rows = self._lines(run_id)
        first = next(rows, None)
        if first is None:
            return True
        try:
            kept = archive.read(ref, after_seq=first.seq - 1)
            return all(row == line for row, line in zip_longest(chain([first], rows), kept))
        except (NotFound, DamagedLog):
            return False

    def _lines(self, run_id: int) -> Iterator[LogLine]:
        """All lines of a run that are in the table, a page at a time."""
        seq = 0
        while True:
            with self._database.read() as connection:
                page = logs.read(connection, run_id=run_id, after_seq=seq, limit=PAGE_LINES)
            yield from page
            if len(page) < PAGE_LINES:
                return
            seq = page[-1].seq

    def _delete_lines(self, term: Term, run_ids: Sequence[int]) -> int:
        """Delete the lines of these runs, of many short logs in one transaction."""
        never = threading.Event()
        left = deque(run_ids)
        deleted = 0
        while left:
            with self._database.write() as connection:
                free = SLICE_LINES
                while left and free > 0:
                    lines = logs.delete_lines(connection, term=term, run_id=left[0], limit=free)
                    if lines < free:
                        left.popleft()
                    free -= lines
            deleted += SLICE_LINES - free
            if left:
                self._clock.wait(never, SLICE_PAUSE_SECONDS)
        return deleted

    # --- pruning --------------------------------------------------------------------------------

    def _prune(self, term: Term, archived: Archived) -> None:
        """Delete runs past their retention: archived logs first, then log rows, then the runs themselves."""
        days = self._settings().run_retention_days
        if not days:
            return
        with self._database.read() as connection:
            finished_before = self._database.now(connection) - timedelta(days=days)
            old = pruning.due(connection, finished_before=finished_before, limit=PRUNED_MAX)
        if not old:
            return
        with self._database.write() as connection:
            marked = pruning.mark(connection, term=term, run_ids=old)
            with_lines = logs.having_lines(connection, marked)
        for run_id, ref in marked.items():
            if ref is not None:
                self._discard(run_id, ref)
        self._delete_lines(term, with_lines)
        with self._database.write() as connection:
            archived.pruned = pruning.delete_marked(connection, term=term, run_ids=marked)
        archived.more |= len(old) == PRUNED_MAX

    def _prune_workers(self, term: Term, archived: Archived) -> None:
        with self._database.write() as connection:
            left_before = self._database.now(connection) - timedelta(days=GONE_WORKER_DAYS)
            deleted = pruning.delete_gone_workers(
                connection, term=term, left_before=left_before, limit=GONE_WORKERS_MAX
            )
        archived.more |= deleted == GONE_WORKERS_MAX

    def _discard(self, run_id: int, ref: str) -> None:
        """Delete an archived log. One that is permanently out of reach must not keep its run from being
        deleted."""
        if self._archive is None:
            reason = "no log archive is configured"
        else:
            try:
                self._archive.delete(ref)
            except (ConfigurationError, NotFound) as problem:
                reason = problem.message
            else:
                return
        log.warning("archived log not deleted", run=run_id, ref=ref, reason=reason)
