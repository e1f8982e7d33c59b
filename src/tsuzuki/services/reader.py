"""Jobs and runs over the fast path (`store.reader`), with the same methods and results as `Jobs` and `Runs`.

If something is not found, only the ordinary path can tell why; `CannotRead` is raised then.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tsuzuki.model.clock import Clock
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import Run, retry_key
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services.job_views import JobView, LastEnd, views_of
from tsuzuki.services.run_views import RunView
from tsuzuki.store.reader.connection import CannotRead
from tsuzuki.store.reader.reader import StoredRows

if TYPE_CHECKING:
    from tsuzuki.services.explain import StatusReason

__all__ = ["CannotRead", "JobReader", "Reader", "RunReader"]


class JobReader:
    def __init__(
        self, rows: StoredRows, in_file: Sequence[JobSpec], clock: Clock, built_in: Collection[str]
    ) -> None:
        self._rows = rows
        self._in_file = in_file
        self._clock = clock
        self._built_in = built_in

    def find(self) -> list[JobView]:
        """Every job of the file and of the database, by name."""
        return views_of(
            self._in_file, self._rows.jobs(), built_in=self._built_in, now=self._clock.now()
        )

    def last_ends(self) -> dict[str, LastEnd]:
        """How the newest run that has ended did so, by job."""
        return {
            run.job_name: LastEnd(run_id=run.id, outcome=run.outcome, finished_at=run.finished_at)
            for run in self._rows.last_ended()
        }


class RunReader:
    def __init__(self, rows: StoredRows) -> None:
        self._rows = rows

    def find(self, wanted: RunFilter) -> list[Run]:
        """Runs, newest first."""
        try:
            found = self._rows.runs(wanted)
        except ValueError as unknown:
            raise CannotRead(str(unknown)) from unknown
        if wanted.job_name is not None and not found:
            raise CannotRead("there may be no such job")
        return found

    def waiting_reasons(self, found: Sequence[Run]) -> "dict[int, StatusReason]":
        """None wait, or the ordinary way knows why."""
        if any(run.state in (RunState.PENDING, RunState.ORPHANED) for run in found):
            raise CannotRead("why runs wait is not known here")
        return {}

    def get(self, run_id: int) -> RunView:
        run = self._rows.run(run_id)
        if run is None:
            raise CannotRead("there is no such run")
        retry = self._rows.run_by_key(retry_key(run_id))
        return RunView(
            run=run,
            history=self._rows.history(run_id),
            retried_as=retry.id if retry else None,
            cancel_requested=self._rows.cancel_request(run_id),
        )


@dataclass(frozen=True, kw_only=True)
class Reader:
    """What a reading command asks; an application has the same two and more."""

    jobs: JobReader
    runs: RunReader
