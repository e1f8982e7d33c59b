"""Keeps the database small: old logs move to the archive, old runs are forgotten.

A log leaves in three steps: its lines are written to the archive, the run says where they are, the rows go.
Each step may be the last one before a crash, and each finds on the next round what the one before it left.
Readers need only look at the run after they looked for rows: while it names no archive, the rows were whole.
"""

import threading
from collections.abc import Callable, Iterator
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

LOOKED_AT_MAX = 50
"""At most so many runs with lines are looked at in one tick, and so many logs archived."""

PRUNED_MAX = 200
"""At most so many runs are forgotten in one tick."""

PAGE_LINES = 500
SLICE_LINES = 2_000
SLICE_PAUSE_SECONDS = 0.01
"""A long log goes in slices with pauses between, so that heartbeats and moves get their turn."""


@dataclass(kw_only=True)
class Archived:
    """What one tick did; `more` if the next one should follow at once."""

    runs: int = 0
    lines: int = 0
    pruned: int = 0
    more: bool = False


class Archivist:
    """One of the leader's duties, in a loop of its own: an archive may be slow."""

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
        self._looked_at_id = 0

    def tick(self, term: Term) -> Archived:
        """Archive some old logs and forget some old runs. Without an archive logs stay where they are,
        and an archive that fails does not keep old runs from being forgotten."""
        archived = Archived()
        try:
            if self._archive is not None:
                self._put_away(term, self._archive, archived)
        finally:
            self._prune(term, archived)
        return archived

    # --- archiving ------------------------------------------------------------------------------

    def _put_away(self, term: Term, archive: LogArchive, archived: Archived) -> None:
        """Look at the next runs with lines. One that cannot be archived is passed by and met again
        in the next round, so that it does not hold up the others."""
        with self._database.read() as connection:
            age = timedelta(days=self._settings().log_retention_days_db)
            finished_before = self._database.now(connection) - age
            stored = logs.stored(
                connection,
                created_before=finished_before,
                after_id=self._looked_at_id,
                limit=LOOKED_AT_MAX,
            )
        for one in stored:
            self._looked_at_id = one.run_id
            if not one.is_old(finished_before):
                continue
            if not self._is_safe(term, archive, one):
                return
            dropped = self._drop_lines(term, one.run_id)
            archived.lines += dropped
            archived.runs += bool(dropped)
        if len(stored) < LOOKED_AT_MAX:
            self._looked_at_id = 0
        else:
            archived.more = True

    def _is_safe(self, term: Term, archive: LogArchive, one: StoredLog) -> bool:
        """Have the lines in the archive and the run say so. False: another leads."""
        if one.finished_at is None or pruning.is_marked(one.log_ref):
            return True  # the run is gone or going, and nobody can ask for its lines any more
        if one.log_ref is not None:
            if self._holds(archive, one.log_ref, one.run_id):
                return True
            log.warning("an archived log is written again", run=one.run_id, ref=one.log_ref)
        ref = archive.write(one.run_id, one.finished_at, self._lines(one.run_id))
        with self._database.write() as connection:
            return logs.set_ref(connection, term=term, log=one, ref=ref)

    def _holds(self, archive: LogArchive, ref: str, run_id: int) -> bool:
        """Whether the archive has every line that is still in the table, word for word. It may have
        more: the rows of a long log leave in slices, the first ones first."""
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

    def _drop_lines(self, term: Term, run_id: int) -> int:
        never = threading.Event()
        dropped = 0
        while True:
            with self._database.write() as connection:
                slice_lines = logs.delete_lines(
                    connection, term=term, run_id=run_id, limit=SLICE_LINES
                )
            dropped += slice_lines
            if slice_lines < SLICE_LINES:
                return dropped
            self._clock.wait(never, SLICE_PAUSE_SECONDS)

    # --- forgetting -----------------------------------------------------------------------------

    def _prune(self, term: Term, archived: Archived) -> None:
        """Remove runs past their time: archived logs first, then rows, then the runs themselves."""
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
            talkative = logs.having_lines(connection, marked)
        for run_id, ref in marked.items():
            if ref is not None:
                self._discard(run_id, ref)
        for run_id in talkative:
            self._drop_lines(term, run_id)
        with self._database.write() as connection:
            archived.pruned = pruning.delete_marked(connection, term=term, run_ids=marked)
        archived.more |= len(old) == PRUNED_MAX

    def _discard(self, run_id: int, ref: str) -> None:
        """Remove an archived log. One that is out of our reach for good must not keep the run."""
        if self._archive is None:
            why = "no log archive is in use"
        else:
            try:
                self._archive.delete(ref)
            except (ConfigurationError, NotFound) as problem:
                why = problem.message
            else:
                return
        log.warning("an archived log stays behind", run=run_id, ref=ref, why=why)
