"""A feed site, a real database, and fetches of a feeds job without an engine around them.

A run here is a stored one, RUNNING and fenced like any other; only who leads and who executes is the test itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table, select

from support.factories import WORKER, add_worker, create_run, take_lead
from tsuzuki.collectors.feeds.fetch import FeedFetcher, FetchSummary
from tsuzuki.collectors.feeds.options import FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.tables import feeds, items
from tsuzuki.collectors.kit.safe_download import SafeDownloader
from tsuzuki.engine.run_context import RunContext, StopSignal
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.output_buffer import OutputBuffer
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.sandbox.feed_site import FeedSite
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Database

SITE_START = datetime(2026, 2, 1, tzinfo=UTC)
JOB = "press"


@dataclass
class FetchRun:
    """One run under way."""

    database: Database
    task: Task
    context: RunContext
    stop_signal: StopSignal
    output: OutputBuffer

    def end(self, state: RunState = RunState.SUCCEEDED) -> None:
        reason = None if state is RunState.SUCCEEDED else Reason.HANDLER_FAILED
        ending = RunEnd(run=self.task.started, state=state, reason=reason)
        with self.database.write() as connection:
            assert moves.finish(connection, worker_id=WORKER, ends=[ending])

    @property
    def log(self) -> list[str]:
        buffered = self.output.take()
        self.output.put_back(buffered)
        return [line.body for _, line in buffered.lines]


@dataclass
class Fetching:
    database: Database
    site: FeedSite
    server: StandIn
    term: Term
    section: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def options(self, **named: Any) -> FeedsOptions:
        """Feeds by name: a path of the site, or a mapping of options with `url` as a path."""
        known = {}
        for name, said in named.items():
            feed = {"url": said} if isinstance(said, str) else dict(said)
            if feed["url"].startswith("/"):
                feed["url"] = self.server.url + feed["url"]
            known[name] = {"backfill": "all", **feed}
        return FeedsOptions.model_validate({"feeds": known})

    def fetch(
        self, job: str = JOB, *, how: dict[str, Any] | None = None, **named: Any
    ) -> FetchSummary:
        """One whole run that fetches; `how` are arguments of `fetch_due`."""
        options = self.options(**named)
        run = self.start(job)
        try:
            with self.fetcher(run, options) as fetcher:
                summary = fetcher.fetch_due(**(how or {}))
        except BaseException:
            run.end(RunState.FAILED)
            raise
        self.log = run.log
        run.end()
        return summary

    @contextmanager
    def fetcher(self, run: FetchRun, options: FeedsOptions) -> Iterator[FeedFetcher]:
        section = FeedsSection.model_validate({"private_hosts": ["127.0.0.1"], **self.section})
        with SafeDownloader(
            clock=self.database.clock, timeout_seconds=10.0, private_hosts=section.private_hosts
        ) as downloader:
            yield FeedFetcher(
                run=run.context,
                database=self.database,
                section=section,
                options=options,
                downloader=downloader,
            )

    def start(self, job: str = JOB) -> FetchRun:
        created = create_run(self.database, self._define(job))
        with self.database.write() as connection:
            assignment = Assignment(run=created, worker_id=WORKER)
            assert moves.assign(connection, term=self.term, assignments=[assignment])
            (assigned,) = runs.get_many(connection, [created.id])
            ref = RunRef(id=assigned.id, version=assigned.version)
            run = moves.start(connection, worker_id=WORKER, runs=[ref])[created.id]
            definition = jobs.get_by_name(connection, job)
        assert definition is not None
        task = Task(run=run, started=run.started, spec=definition.spec)
        output = OutputBuffer(clock=self.database.clock, settings=EngineSettings)
        run_io = WorkerRunIO(database=self.database, output=output, worker_id=lambda: WORKER)
        stop_signal = StopSignal()
        context = RunContext(
            task=task, run_io=run_io, clock=self.database.clock, stop_signal=stop_signal
        )
        return FetchRun(self.database, task, context, stop_signal, output)

    def rows(self, table: Table, *order: str) -> list[dict[str, Any]]:
        by = [table.c[name] for name in order] or list(table.primary_key)
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(select(table).order_by(*by)).mappings()]

    def items(self) -> list[dict[str, Any]]:
        return self.rows(items, "id")

    def titles(self) -> list[str]:
        return [row["title"] for row in self.items()]

    def feed(self, name: str = "news") -> dict[str, Any]:
        (row,) = [row for row in self.rows(feeds) if row["name"] == name]
        return row

    def _define(self, name: str) -> int:
        spec = JobSpec(
            name=name,
            handler="feeds",
            options={},
            concurrency_policy=ConcurrencyPolicy.ALLOW,
        )
        with self.database.write() as connection:
            job = jobs.get_by_name(connection, name)
            return job.id if job else jobs.add(connection, spec, source=JobSource.DATABASE)


def open_fetching(database: Database, site: FeedSite, server: StandIn) -> Fetching:
    add_worker(database, WORKER, capacity=1000)
    term = take_lead(database, lease_seconds=10_000_000)
    return Fetching(database=database, site=site, server=server, term=term)
