"""A feed site, a model and a Mastodon server over real HTTP, a real database, and runs of a feeds job on them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select

from support.factories import WORKER, add_worker, take_lead
from support.handler_runs import HandlerRun, define_job, start_run
from support.observed_run_io import Act, ObservedRunIO, do_nothing
from tsuzuki.collectors.feeds.collect import collect
from tsuzuki.collectors.feeds.options import FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedSite
from tsuzuki.collectors.feeds.sandbox.gemini import KEY, Gemini
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, Mastodon, mastodon
from tsuzuki.collectors.feeds.service import FeedsService
from tsuzuki.collectors.feeds.tables import feed_posts, item_steps, items, waiting_items
from tsuzuki.config import Configuration
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.sandbox.server import StandIn
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.runs import Runs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.collector import CollectorContext, ServiceContext

JOB = "bot"
FEED_PATH = "/news.xml"


class FeedsRun(HandlerRun[ObservedRunIO]):
    """One run under way."""

    feeds_fixture: "FeedsFixture"

    def work(self, *, before: Act = do_nothing, after: Act = do_nothing) -> dict[str, Any]:
        """Let the handler do its work, with an act around each commit, and the run end as it ends."""
        self.run_io.before, self.run_io.after = before, after
        try:
            result = collect(self.feeds_fixture.collector_context, self.context)
        except BaseException:
            self.end(RunState.FAILED)
            raise
        assert self.end(RunState.SUCCEEDED)
        return result


@dataclass
class FeedsFixture:
    database: Database
    term: Term
    workspace: Path
    site: FeedSite
    server: StandIn
    gemini: Gemini
    gemini_server: StandIn
    mastodon: Mastodon
    mastodon_server: StandIn
    section: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Of the job, beside its feeds."""

    feed: dict[str, Any] = field(default_factory=dict)
    """Of the only feed."""

    last: FeedsRun | None = None

    @property
    def collector_context(self) -> CollectorContext:
        said: dict[str, Any] = {
            "models": {
                "default": {
                    "provider": "gemini",
                    "base_url": self.gemini_server.url,
                    "api_key": KEY,
                    "timeout": 5,
                }
            },
            "accounts": {
                "default": {
                    "type": "mastodon",
                    "base_url": self.mastodon_server.url,
                    "access_token": TOKEN,
                    "timeout": 5,
                }
            },
            "private_hosts": ["127.0.0.1"],
            "request_timeout": 5,
            **self.section,
        }
        return CollectorContext(
            database=self.database,
            workspace=self.workspace,
            read_section=lambda **_only: FeedsSection.model_validate(said),
        )

    @property
    def service(self) -> FeedsService:
        """The use-cases, as a command calls them."""
        context, database = self.collector_context, self.database
        services = ServiceContext(
            database=database,
            workspace=context.workspace,
            read_section=context.read_section,
            actor="test",
            jobs=Jobs(database=database, reload=_no_file, kinds={}, actor="test"),
            runs=Runs(database=database, actor="test"),
            liveness=Liveness(database=database),
        )
        return FeedsService.of(services)

    def add(self, title: str = "A bridge opens", **article: Any) -> Article:
        """An article of the feed."""
        article = {"text": f"{title}. The mayor came, and so did many people.", **article}
        return self.site.add_article(FEED_PATH, Article(title=title, **article))

    def start(self, *, arguments: Mapping[str, Any] | None = None, **feeds: Any) -> FeedsRun:
        """A run of the job; its feed is the site's, unless others are named."""
        default = {"news": {"url": FEED_PATH, "backfill": "all", **self.feed}}
        named = {
            name: {**body, "url": self.server.url + body["url"]}
            for name, body in (feeds or default).items()
        }
        said = FeedsOptions.model_validate({"feeds": named, **self.options})
        job_id = define_job(self.database, JOB, "feeds", said.model_dump(mode="json"))
        started = start_run(
            self.database, self.term, job_id, arguments=arguments, run_io=ObservedRunIO
        )
        self.last = FeedsRun(**vars(started))
        self.last.feeds_fixture = self
        return self.last

    def work(self, **said: Any) -> dict[str, Any]:
        """One whole run."""
        return self.start(**said).work()

    @property
    def posts(self) -> list[str]:
        """The texts of what stands on the Mastodon server."""
        return [status.text for status in self.mastodon.statuses]

    def items(self) -> list[dict[str, Any]]:
        return self._rows(items)

    def item(self) -> tuple[int, int | None, int]:
        """State, reason and retries of the only item."""
        (row,) = self.items()
        return row["status"], row["reason"], row["retry_count"]

    def waiting(self) -> list[dict[str, Any]]:
        return self._rows(waiting_items)

    def steps(self) -> list[dict[str, Any]]:
        return self._rows(item_steps)

    def stored_posts(self) -> list[dict[str, Any]]:
        return self._rows(feed_posts)

    def paid_steps(self) -> int:
        """How many requests we say were paid for."""
        return sum(1 for step in self.steps() if step["is_paid"])

    def coming_runs(self) -> list[Run]:
        with self.database.read() as connection:
            return runs.find(connection, RunFilter(states=frozenset({RunState.PENDING})))

    def _rows(self, table: Any) -> list[dict[str, Any]]:
        key = next(iter(table.primary_key))
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(select(table).order_by(key)).mappings()]


def _no_file() -> Configuration:
    """Every job is in the database only."""
    return Configuration(
        workspace=Path(),
        file=None,
        database_url="",
        redis_url=None,
        timezone="UTC",
        log_archive=None,
        jobs=(),
    )


@contextmanager
def opened_feeds_fixture(database: Database, workspace: Path) -> Iterator[FeedsFixture]:
    add_worker(database, WORKER, capacity=1000)
    site, gemini, server_of_posts = FeedSite(), Gemini(), mastodon(clock=database.clock)
    site.add_feed(Feed(path=FEED_PATH, title="News"))
    with (
        site.serve() as server,
        StandIn(gemini) as gemini_server,
        StandIn(server_of_posts) as mastodon_server,
    ):
        yield FeedsFixture(
            database=database,
            term=take_lead(database, lease_seconds=1e9),
            workspace=workspace,
            site=site,
            server=server,
            gemini=gemini,
            gemini_server=gemini_server,
            mastodon=server_of_posts,
            mastodon_server=mastodon_server,
        )
