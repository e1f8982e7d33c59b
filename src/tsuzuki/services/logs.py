"""The log of a run, in the database or in the archive. A reader does not notice when it is moved.

Rows leave the database only after the run names the archive that has them all, and a run that names one does
so for good. So the rows are read first and the run second: as long as it names no archive, the rows were
whole when they were read; from then on the archive has every line, under the same numbers.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from tsuzuki.engine.archive.log_archive import LogArchive
from tsuzuki.model.errors import ConfigurationError, NotFound, UsageError
from tsuzuki.model.run import Run
from tsuzuki.services.lookup import require_run
from tsuzuki.store import logs, pruning
from tsuzuki.store.logs import LogLine
from tsuzuki.store.sql.database import Database

__all__ = ["LogLine", "RunLogs"]

LINES_MAX = 10_000
"""At most so many lines at once."""

POLL_SECONDS = 0.2
PAGE_LINES = 500


class RunLogs:
    def __init__(self, *, database: Database, archive: LogArchive | None) -> None:
        self._database = database
        self._archive = archive

    def read(self, run_id: int, *, after_seq: int = 0, limit: int = 1000) -> list[LogLine]:
        """The lines after `after_seq`, in order, at most `limit` of them."""
        _check_count("limit", limit)
        lines, run = self._look(run_id, after_seq=after_seq, limit=limit)
        if run.log_ref is None:
            return lines
        return list(islice(self._archived(run, run.log_ref, after_seq=after_seq), limit))

    def read_all(self, run_id: int) -> Iterator[LogLine]:
        """Every line that is there now, in order; an archived log is unpacked once, not page by page."""
        seq = 0
        while True:
            lines, run = self._look(run_id, after_seq=seq, limit=PAGE_LINES)
            if run.log_ref is not None:
                yield from self._archived(run, run.log_ref, after_seq=seq)
                return
            yield from lines
            if len(lines) < PAGE_LINES:
                return
            seq = lines[-1].seq

    def tail(self, run_id: int, count: int) -> list[LogLine]:
        """The last `count` lines, in order."""
        _check_count("count", count)
        with self._database.read() as connection:
            lines = logs.tail(connection, run_id=run_id, count=count)
            run = require_run(connection, run_id)
        if run.log_ref is None:
            return lines
        return list(deque(self._archived(run, run.log_ref), maxlen=count))

    def search(
        self, run_id: int, text: str, *, after_seq: int = 0, limit: int = 1000
    ) -> list[LogLine]:
        """The lines of the whole log that have a text in them, in order, at most `limit`. Upper and lower case are
        the same for ASCII letters."""
        _check_count("limit", limit)
        with self._database.read() as connection:
            lines = logs.search(
                connection, run_id=run_id, text=text, after_seq=after_seq, limit=limit
            )
            run = require_run(connection, run_id)
        if run.log_ref is None:
            return lines
        wanted = _folded(text)
        archived = self._archived(run, run.log_ref, after_seq=after_seq)
        return list(islice((line for line in archived if wanted in _folded(line.body)), limit))

    def follow(
        self, run_id: int, *, wait: Callable[[float], object], after_seq: int = 0
    ) -> Iterator[LogLine]:
        """Every line after `after_seq`, as it is written; ends when the run has ended and all its
        lines were given. Between two looks `wait` is called with the seconds to let pass."""
        seq, had_ended = after_seq, False
        while True:
            lines, run = self._look(run_id, after_seq=seq, limit=PAGE_LINES)
            if run.log_ref is not None:
                yield from self._archived(run, run.log_ref, after_seq=seq)
                return
            yield from lines
            if lines:
                seq = lines[-1].seq
            elif had_ended:
                return
            elif not run.state.is_final:
                wait(POLL_SECONDS)
            # The last lines come with the end itself: after seeing it, one look more is due.
            had_ended = run.state.is_final

    def _look(self, run_id: int, *, after_seq: int, limit: int) -> tuple[list[LogLine], Run]:
        """The rows, and then the run that says whether they are all there is."""
        with self._database.read() as connection:
            lines = logs.read(connection, run_id=run_id, after_seq=after_seq, limit=limit)
            return lines, require_run(connection, run_id)

    def _archived(self, run: Run, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        if pruning.is_marked(ref):
            raise NotFound(
                f"the log of run {run.id} was deleted, and the run will be deleted too",
                hint="Finished runs are kept for `run_retention_days`.",
                code="log_pruned",
            )
        if self._archive is None:
            raise ConfigurationError(
                f"the log of run {run.id} is archived, but no archive is configured",
                hint=f"Set `log_archive` to the archive it was written to: {ref}",
                code="log_archive_missing",
            )
        return self._archive.read(ref, after_seq=after_seq)


def _folded(text: str) -> str:
    """Without the difference of upper and lower case, of ASCII letters alone, as the database compares."""
    return text.translate(_LOWER)


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _check_count(name: str, count: int) -> None:
    if not 1 <= count <= LINES_MAX:
        raise UsageError(
            f"{name} must be from 1 to {LINES_MAX}, not {count}",
            hint="Continue after the last line to read more.",
            code="log_limit",
        )
