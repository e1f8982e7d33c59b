"""A feed site, a real database, and fetches of a feeds job without an engine around them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sqlalchemy import Table, select

from support.factories import WORKER, add_worker, take_lead
from support.handler_runs import HandlerRun, define_job, start_run
from tsuzuki.collectors.feeds.fetching.fetch import FeedFetcher, FetchSummary
from tsuzuki.collectors.feeds.options import FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.sandbox.feed_site import FeedSite
from tsuzuki.collectors.feeds.tables import feeds, items
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.model.states import RunState
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

SITE_START = datetime(2026, 2, 1, tzinfo=UTC)
JOB = "press"


FetchRun: TypeAlias = HandlerRun[WorkerRunIO]


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
        assert run.end(RunState.SUCCEEDED)
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
        job_id = define_job(self.database, job, "feeds", {})
        return start_run(self.database, self.term, job_id, run_io=WorkerRunIO)

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


def open_fetching(database: Database, site: FeedSite, server: StandIn) -> Fetching:
    add_worker(database, WORKER, capacity=1000)
    term = take_lead(database, lease_seconds=10_000_000)
    return Fetching(database=database, site=site, server=server, term=term)
