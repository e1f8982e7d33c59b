"""Runs of a collector, stored and fenced like any other, that can be ended at any of their transactions."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import MetaData, select

from support.factories import WORKER, add_worker, read_run, take_lead
from support.handler_runs import HandlerRun, define_job, start_run
from support.observed_run_io import Act, Killed, ObservedRunIO, do_nothing
from support.waiting import wait_until
from tsuzuki.engine.run_context import RunContext, StopSignal
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import RunState
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.collector import CollectorContext

from .case import Case

Rows = dict[str, list[tuple[Any, ...]]]
KILLS_MAX = 50


@dataclass
class CaseRun:
    """One run of a case."""

    harness: "Harness"
    run: HandlerRun[ObservedRunIO]

    @property
    def context(self) -> RunContext:
        return self.run.context

    @property
    def stop_signal(self) -> StopSignal:
        return self.run.stop_signal

    @property
    def commits(self) -> int:
        """How many transactions it has committed."""
        return self.run.run_io.commits

    @property
    def log(self) -> list[str]:
        return self.run.log

    def collect(self, *, before: Act = do_nothing, after: Act = do_nothing) -> Any:
        """Let the handler work, and the run end as it ends. A killed run is found by the leader and
        ended; a fenced one was ended already."""
        self.run.run_io.before, self.run.run_io.after = before, after
        try:
            collector = self.harness.case.collector
            result = collector.load(collector.handler)(self.harness.context, self.context)
        except BaseException:
            self.run.end(RunState.FAILED)
            raise
        self.run.end(RunState.SUCCEEDED)
        return result

    def cancel(self) -> bool:
        """Whether an operator could fence the run. Its worker does not know yet."""
        run = RunRef(id=self.context.id, version=self.run.task.started.version)
        with self.harness.database.write() as connection:
            return bool(moves.cancel(connection, operator="operator", runs=[run]))

    def take_away(self) -> None:
        """Fence the run, as soon as the row is free."""
        wait_until(self.cancel, "the row is free")


@dataclass
class Harness:
    """A database with the case's tables and its job."""

    case: Case
    database: Database
    term: Term = field(init=False)
    job_id: int = field(init=False)

    def __post_init__(self) -> None:
        add_worker(self.database, WORKER, capacity=1000)
        self.term = take_lead(self.database, lease_seconds=3600)
        self.job_id = define_job(
            self.database, "conforming", self.case.collector.name, self.case.options
        )
        self.case.prepare(self.database)

    @property
    def context(self) -> CollectorContext:
        return CollectorContext(
            database=self.database, workspace=self.case.workspace, read_section=self.case.section
        )

    def start(self) -> CaseRun:
        run = start_run(self.database, self.term, self.job_id, run_io=ObservedRunIO)
        return CaseRun(self, run)

    def kill_until(
        self, expected: Rows, *, before: Act = do_nothing, after: Act = do_nothing
    ) -> int:
        """Start runs, each killed in the same way, until the rows are as expected or one comes
        through; how many were killed."""
        killed = 0
        while self.rows() != expected:
            assert killed < KILLS_MAX
            try:
                self.start().collect(before=before, after=after)
            except Killed:
                killed += 1
            else:
                break
        return killed

    def rows(self) -> Rows:
        """Everything the collector has stored, without what differs from run to run."""
        return self._rows(self.case.component.metadata, self.case.volatile)

    def every_row(self) -> Rows:
        """Everything in the database, to the last column."""
        return {**self._rows(ENGINE.metadata), **self._rows(self.case.component.metadata)}

    def progress(self, run: CaseRun) -> tuple[int, int | None]:
        stored = read_run(self.database, run.context.id)
        return stored.progress_processed, stored.progress_total

    def _rows(self, metadata: MetaData, volatile: Any = ()) -> Rows:
        with self.database.read() as connection:
            return {
                table.name: sorted(
                    map(
                        tuple,
                        connection.execute(
                            select(
                                *(c for c in table.c if f"{table.name}.{c.name}" not in volatile)
                            )
                        ),
                    ),
                    key=repr,
                )
                for table in metadata.sorted_tables
                if any(f"{table.name}.{c.name}" not in volatile for c in table.c)
            }
