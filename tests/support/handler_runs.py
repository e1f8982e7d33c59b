"""A run of a Python handler without an engine around it: stored, RUNNING and fenced like any other.

Who leads and who executes is the test itself. So a test may stop in the middle, let a run be taken away, or start
a second one beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from support.factories import WORKER, create_run
from tsuzuki.engine.run_context import RunContext, StopSignal
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.output_buffer import OutputBuffer
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Database

RunIO = TypeVar("RunIO", bound=WorkerRunIO)


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
class HandlerRun(Generic[RunIO]):
    """One run under way."""

    database: Database
    task: Task
    output: OutputBuffer
    run_io: RunIO
    stop_signal: StopSignal
    context: ObservedContext

    def end(self, state: RunState) -> bool:
        """End the run, unless it was ended already."""
        reason = None if state is RunState.SUCCEEDED else Reason.HANDLER_FAILED
        ending = RunEnd(run=self.task.started, state=state, reason=reason)
        with self.database.write() as connection:
            return bool(moves.finish(connection, worker_id=WORKER, ends=[ending]))

    def when_said(self, words: str, act: Callable[[], object]) -> None:
        """Do something in the middle of the run."""
        self.context.reactions.append((words, act))

    @property
    def log(self) -> list[str]:
        """Log lines written so far."""
        buffered = self.output.take()
        self.output.put_back(buffered)
        return [line.body for _, line in buffered.lines]


def define_job(database: Database, name: str, handler: str, options: Mapping[str, Any]) -> int:
    """A job with these options, made or changed; any number of its runs may be under way."""
    spec = JobSpec(
        name=name,
        handler=handler,
        options=dict(options),
        concurrency_policy=ConcurrencyPolicy.ALLOW,
    )
    with database.write() as connection:
        job = jobs.get_by_name(connection, name)
        if job is None:
            return jobs.add(connection, spec, source=JobSource.DATABASE)
        if job.spec != spec:
            jobs.change(connection, job=job, spec=spec)
        return job.id


def start_run(
    database: Database,
    term: Term,
    job_id: int,
    *,
    arguments: Mapping[str, Any] | None = None,
    run_io: type[RunIO],
) -> HandlerRun[RunIO]:
    """A new run of a job, started on the worker `WORKER`."""
    created = create_run(database, job_id, arguments=arguments or {})
    with database.write() as connection:
        assignment = Assignment(run=created, worker_id=WORKER)
        assert moves.assign(connection, term=term, assignments=[assignment])
        (assigned,) = runs.get_many(connection, [created.id])
        ref = RunRef(id=assigned.id, version=assigned.version)
        run = moves.start(connection, worker_id=WORKER, runs=[ref])[created.id]
        job = next(job for job in jobs.find(connection) if job.id == job_id)
    task = Task(run=run, started=run.started, spec=job.spec)
    output = OutputBuffer(clock=database.clock, settings=EngineSettings)
    io = run_io(database=database, output=output, worker_id=lambda: WORKER)
    stop_signal = StopSignal()
    context = ObservedContext(task=task, run_io=io, clock=database.clock, stop_signal=stop_signal)
    return HandlerRun(database, task, output, io, stop_signal, context)
