"""For tests of log archiving: finished runs with logs, a clock to advance by days, and an archivist."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert, select

from support.factories import WORKER, add_worker, read_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from tsuzuki.engine.archive.archivist import Archivist
from tsuzuki.engine.archive.log_archive import FolderArchive, LogArchive
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.run import StartedRun
from tsuzuki.model.settings import DAY, EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.logs import RunLogs
from tsuzuki.store import logs
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.history_tables import run_hours_progress
from tsuzuki.store.schema.tables import job_run_logs, job_run_transitions, job_runs
from tsuzuki.store.sql.database import Database

AT = datetime(2026, 3, 1, 11, 59, 59, 123_456, tzinfo=UTC)
LOG_DAYS = 7
WORDS = ["one", "two", "three", "four", "five"]


def line(seq: int, body: str, stream: str = "stdout") -> LogLine:
    return LogLine(seq=seq, at=AT, stream=stream, body=body)


def numbered(bodies: Iterable[str]) -> list[LogLine]:
    return [line(seq, body) for seq, body in enumerate(bodies, start=1)]


class ArchivingFixture:
    """One database with a leader, and an archive."""

    def __init__(self, database: Database, clock: MovingClock, archive: LogArchive | None) -> None:
        self.database = database
        self.clock = clock
        self.archive = archive
        self.settings = EngineSettings(log_retention_days_db=LOG_DAYS)
        self.term = take_lead(database)
        self.reader = RunLogs(database=database, archive=archive)
        self._archivist = self.new_archivist()
        add_worker(database)
        # Runs are pruned once they are counted; here everything is.
        with database.write() as connection:
            until = clock.now() + timedelta(days=1_000)
            connection.execute(insert(run_hours_progress).values(id=1, until=until))

    def new_archivist(self, archive: LogArchive | None = None) -> Archivist:
        """A second one, as in another process."""
        return Archivist(
            database=self.database,
            settings=lambda: self.settings,
            archive=archive or self.archive,
            clock=ManualClock(AT),  # only for its pauses; ages are by the database's clock
        )

    def tick(self) -> object:
        return self._archivist.tick(self.term)

    def started_run(self) -> StartedRun:
        run = run_in_state(self.database, RunState.RUNNING, self.term)
        return StartedRun(id=run.id, version=run.version, epoch=self.term.epoch)

    def say(self, run: StartedRun, lines: Sequence[LogLine]) -> None:
        with self.database.write() as connection:
            logs.append(connection, worker_id=WORKER, lines=[(run, line) for line in lines])

    def end(self, run: StartedRun, lines: Sequence[LogLine] = ()) -> None:
        """End a run, its last lines in the same transaction."""
        end = moves.RunEnd(run=run, state=RunState.FAILED, reason=Reason.HANDLER_FAILED)
        with self.database.write() as connection:
            logs.append(connection, worker_id=WORKER, lines=[(run, line) for line in lines])
            assert moves.finish(connection, worker_id=WORKER, ends=[end])

    def ended_run(self, bodies: Iterable[str] = WORDS) -> int:
        run = self.started_run()
        self.end(run, numbered(bodies))
        return run.id

    def old_run(self, bodies: Iterable[str] = WORDS) -> int:
        """A run whose log is due to be archived."""
        run_id = self.ended_run(bodies)
        self.days_pass(LOG_DAYS + 1)
        return run_id

    def days_pass(self, days: float) -> None:
        self.clock.advance(days * DAY)

    def rows_of(self, run_id: int) -> list[LogLine]:
        with self.database.read() as connection:
            return logs.read(connection, run_id=run_id, limit=10_000)

    def ref_of(self, run_id: int) -> str | None:
        ref: str | None = read_run(self.database, run_id).log_ref
        return ref

    def left_of(self, run_id: int) -> set[str]:
        """The tables that still have rows of a run."""
        columns = (job_runs.c.id, job_run_transitions.c.run_id, job_run_logs.c.run_id)
        with self.database.read() as connection:
            return {
                column.table.name
                for column in columns
                if connection.execute(select(column).where(column == run_id)).first()
            }


def folder_archiving(database: Database, clock: MovingClock, folder: Path) -> ArchivingFixture:
    return ArchivingFixture(database, clock, FolderArchive(folder))


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
