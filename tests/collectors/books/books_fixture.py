"""A stand-in for the source, a real database, and runs of a books job without an engine around them.

A run here is a stored one, RUNNING and fenced like any other; only who leads and who executes is the
test itself. So a test may stop in the middle, let a run be taken away, or start a second one beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.factories import add_worker, create_run, take_lead
from tsuzuki.collectors.books.collect import collect
from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.queries.books import find
from tsuzuki.collectors.books.queries.cursors import list_collect_cursors
from tsuzuki.collectors.collector import CollectorContext
from tsuzuki.engine.run_context import RunContext, StopSignal
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.output_buffer import OutputBuffer
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.model.cursor import Cursor
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.sandbox.google_books import GoogleBooks
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.runs.runs import RunFilter
from tsuzuki.store.sql.database import Database

WORKER = "host-1-aaaa"
KEY = "k3y-that-is-secret"


class ObservedContext(RunContext):
    """A context that does something when certain words have been said."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self.reactions: list[tuple[str, Callable[[], object]]] = []

    def log(self, message: str) -> None:
        super().log(message)
        for words, act in self.reactions:
            if words in message:
                act()


@dataclass
class BooksRun:
    """One run under way."""

    books_fixture: "BooksFixture"
    task: Task
    output: OutputBuffer
    stop_signal: StopSignal
    context: ObservedContext

    def work(self) -> dict[str, Any]:
        """Let the handler do its work, and the run end as it ends."""
        try:
            result = collect(self.books_fixture.collector_context, self.context)
        except Exception:
            self.end(RunState.FAILED)
            raise
        self.end(RunState.SUCCEEDED)
        return result

    def end(self, state: RunState) -> None:
        reason = None if state is RunState.SUCCEEDED else Reason.HANDLER_FAILED
        ending = RunEnd(run=self.task.started, state=state, reason=reason)
        with self.books_fixture.database.write() as connection:
            assert moves.finish(connection, worker_id=WORKER, ends=[ending])

    def when_said(self, words: str, act: Callable[[], object]) -> None:
        """Do something in the middle of the run."""
        self.context.reactions.append((words, act))

    @property
    def log(self) -> list[str]:
        """What it has said so far."""
        buffered = self.output.take()
        self.output.put_back(buffered)
        return [line.body for _, line in buffered.lines]


@dataclass
class BooksFixture:
    database: Database
    source: GoogleBooks
    server: StandIn
    term: Term
    section: dict[str, Any] = field(default_factory=dict)
    last: BooksRun | None = None

    @property
    def collector_context(self) -> CollectorContext:
        said = {"base_url": f"{self.server.url}/books/v1", "api_key": KEY, **self.section}
        return CollectorContext(
            database=self.database,
            workspace=Path(),
            read_section=lambda **_only: BooksSection.model_validate(said),
        )

    def start(
        self,
        name: str = "novelties",
        *,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> BooksRun:
        """A run of the job `name`, whose options are said anew each time, as in an edited file."""
        job_id = self._define(name, {"queries": ["python"], **options})
        created = create_run(self.database, job_id, arguments=arguments or {})
        with self.database.write() as connection:
            assignment = Assignment(run=created, worker_id=WORKER)
            assert moves.assign(connection, term=self.term, assignments=[assignment])
            (assigned,) = runs.get_many(connection, [created.id])
            ref = RunRef(id=assigned.id, version=assigned.version)
            run = moves.start(connection, worker_id=WORKER, runs=[ref])[created.id]
            job = jobs.get_by_name(connection, name)
        assert job is not None
        task = Task(run=run, started=run.started, spec=job.spec)
        output = OutputBuffer(clock=self.database.clock, settings=EngineSettings)
        run_io = WorkerRunIO(database=self.database, output=output, worker_id=lambda: WORKER)
        stop_signal = StopSignal()
        context = ObservedContext(
            task=task, run_io=run_io, clock=self.database.clock, stop_signal=stop_signal
        )
        self.last = BooksRun(
            books_fixture=self, task=task, output=output, stop_signal=stop_signal, context=context
        )
        return self.last

    def collect(self, name: str = "novelties", **options: Any) -> dict[str, Any]:
        """One whole run, and what it says about its collection."""
        return self.start(name, **options).work()["collect"]  # type: ignore[no-any-return]

    @property
    def log(self) -> list[str]:
        """What the last run said."""
        assert self.last is not None
        return self.last.log

    def cursors(self) -> list[Cursor]:
        with self.database.read() as connection:
            return list_collect_cursors(connection)

    def cursor(self) -> tuple[int, bool]:
        """Where the only search is, and whether it is exhausted."""
        (cursor,) = self.cursors()
        return cursor.start_index, cursor.is_exhausted

    def stored(self, name: str = "novelties") -> set[str]:
        with self.database.read() as connection:
            found = find(connection, job_name=name, limit=100_000)
        return {one.book.volume_id for one in found}

    def asked(self) -> list[tuple[int, int]]:
        """Start index and size of every page that was asked for."""
        return [
            (int(seen.request.query["startIndex"]), int(seen.request.query["maxResults"]))
            for seen in self.server.requests
        ]

    def waiting(self) -> list[Any]:
        """The runs that are yet to come."""
        with self.database.read() as connection:
            return runs.find(connection, RunFilter(states=frozenset({RunState.PENDING})))

    def _define(self, name: str, options: dict[str, Any]) -> int:
        kept = BooksOptions.model_validate(options).model_dump(mode="json")
        spec = JobSpec(
            name=name,
            handler="books",
            options=kept,
            concurrency_policy=ConcurrencyPolicy.ALLOW,
        )
        with self.database.write() as connection:
            job = jobs.get_by_name(connection, name)
            if job is None:
                return jobs.add(connection, spec, source=JobSource.DATABASE)
            if job.spec != spec:
                jobs.change(connection, job=job, spec=spec)
            return job.id


def open_books_fixture(database: Database, source: GoogleBooks, server: StandIn) -> BooksFixture:
    add_worker(database, WORKER, capacity=1000)
    return BooksFixture(database=database, source=source, server=server, term=take_lead(database))
