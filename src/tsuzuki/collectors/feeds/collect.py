"""The handler of a feeds job: fetch the feeds that are due, then work on what waits.

A feed that fails does not stop the others; it fails the run only if no feed could be fetched. A model or an account
that cannot be used at all stops the run, and leaves the items as they were.
"""

from contextlib import closing
from typing import Any

from tsuzuki.collectors.feeds.channels.factory import settings_of
from tsuzuki.collectors.feeds.fetching.feed_set import Closure, FeedSet, RunFeed
from tsuzuki.collectors.feeds.fetching.fetch import FeedFetcher, FetchSummary
from tsuzuki.collectors.feeds.items.page_reader import PageReader
from tsuzuki.collectors.feeds.items.process import ItemProcessing, Processed
from tsuzuki.collectors.feeds.items.steps import ItemSteps
from tsuzuki.collectors.feeds.model.budget import Budgets
from tsuzuki.collectors.feeds.model.calls import ModelCalls
from tsuzuki.collectors.feeds.options import FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.posting.changes import PostChanges
from tsuzuki.collectors.feeds.posting.posting import RunPosting
from tsuzuki.collectors.feeds.posting.settling import Settling
from tsuzuki.collectors.feeds.queries import (
    accounts,
    decisions,
    feeds,
    item_moves,
    items,
    unowned,
    unsettled_posts,
)
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.collectors.kit.follow_up import schedule_run_at
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import UsageError
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import CollectorContext

RESUME_PURPOSE = "feeds-resume"


class FeedsRun:
    """One run of a feeds job."""

    def __init__(self, context: CollectorContext, run: RunContext) -> None:
        self._context = context
        self._run = run
        self._database = context.database
        self._options = FeedsOptions.model_validate(run.options)
        self._section = context.section(FeedsSection)

    def collect(self) -> dict[str, Any]:
        """Do what the run asks for: `fetch` and `process` are true unless its arguments say otherwise."""
        downloader = SafeDownloader(
            clock=self._database.clock,
            private_hosts=self._section.private_hosts,
            timeout_seconds=self._section.request_timeout,
        )
        result: dict[str, Any] = {"fetch": None, "process": None}
        with closing(downloader):
            fetched = self._fetch(downloader) if _wants(self._run, "fetch") else None
            if fetched is not None:
                result["fetch"] = fetched.as_dict()
            if _wants(self._run, "process"):
                result["process"] = self._process(downloader).as_dict()
        if fetched is not None and fetched.failures and not fetched.fetched:
            raise next(iter(fetched.failures.values()))
        return result

    def _fetch(self, downloader: SafeDownloader) -> FetchSummary:
        fetcher = FeedFetcher(
            run=self._run,
            database=self._database,
            section=self._section,
            options=self._options,
            downloader=downloader,
        )
        is_asked_for = not _wants(self._run, "process")
        return fetcher.fetch_due(is_forced=is_asked_for, on_feed=self._run.progress)

    def _process(self, downloader: SafeDownloader) -> Processed:
        self._run.raise_if_cancelled()
        limit = _item_limit(self._run, self._options.items_per_run)
        if limit:
            self._require_accounts()
        calls = ModelCalls(
            section=self._section, budgets=Budgets(self._section), database=self._database
        )
        posting = RunPosting(
            run=self._run,
            database=self._database,
            section=self._section,
            workspace=self._context.workspace,
        )
        with (
            closing(calls),
            closing(posting),
            PageReader(downloader, self._section) as page_reader,
        ):
            feed_set = self._open_feeds(calls)
            self._settle(posting)
            steps = ItemSteps(
                run=self._run,
                database=self._database,
                calls=calls,
                posting=posting,
                read_page=page_reader.read,
                prefetch=page_reader.prefetch,
            )
            processing = ItemProcessing(
                run=self._run,
                database=self._database,
                options=self._options,
                feeds=feed_set,
                steps=steps,
                calls=calls,
                posting=posting,
            )
            processed = processing.process(limit)
            changes = PostChanges(
                run=self._run,
                database=self._database,
                options=self._options,
                feeds=feed_set,
                calls=calls,
                posting=posting,
                read_page=page_reader.read,
            )
            processed.changes = changes.tell()
            processed.closures = dict(feed_set.closures)
        self._schedule_next_run(feed_set)
        return processed

    def _require_accounts(self) -> None:
        """Nothing is paid for a post that has nowhere to go. Raises `ConfigurationError`."""
        for feed in self._options.feeds.values():
            if not feed.hold:
                settings_of(self._section, feed.account)

    def _open_feeds(self, calls: ModelCalls) -> FeedSet:
        """The feeds of the job, without those that are parked; what a dead run held is free again."""
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            stored = feeds.sync_feeds(connection, self._run.job_name, self._options, now=now)
            unowned.give_to_feeds(connection)
            items.release_abandoned(connection, run_id=self._run.id)
            unsettled_posts.note_interrupted(connection, self._run.job_name, now=now)
            items.keep_back_unsettled(connection, self._run.job_name)
            ids = [feed.id for feed in stored.values()]
            items.end_backoff(connection, feed_ids=ids, now=now)
            Budgets(self._section).prune(connection, now=now)
            parked = calls.closures(connection, now=now)
            limited = accounts.limited(connection, now=now)
        feed_set = FeedSet(
            RunFeed(
                id=feed.id,
                name=name,
                title=feed.title or name,
                options=self._options.feeds[name],
            )
            for name, feed in stored.items()
        )
        for model, closure in parked.items():
            feed_set.close_model(model, closure)
        for account, until in limited.items():
            feed_set.close_account(account, Closure(why="its account is paused", until=until))
        return feed_set

    def _settle(self, posting: RunPosting) -> None:
        """Look for the posts of which it is not known whether they arrived, if it is time."""
        Settling(
            run=self._run,
            database=self._database,
            posting=posting,
            on_sent=self._finish_found,
            on_freed=_make_ready,
        ).settle()

    def _finish_found(self, connection: Connection, post: Post) -> None:
        """A post that was looked for has arrived: its item is processed."""
        now = self._database.now(connection)
        item_moves.finish_found(connection, post.item_id, run_id=self._run.id, now=now)

    def _schedule_next_run(self, feed_set: FeedSet) -> None:
        """Ask for a run at the moment when the first feed that waits for quota or budget may go on."""
        moment = feed_set.resumes_at()
        if moment is not None:
            with self._run.transaction() as connection:
                schedule_run_at(connection, self._run, moment, purpose=RESUME_PURPOSE)


def _make_ready(connection: Connection, post: Post) -> None:
    """A post is no longer looked for: its item is drawn again, to be sent or to wait for a person. An edit or a
    reply has an item that is processed and stays so."""
    decisions.end_backoff(connection, post.item_id)


def collect(context: CollectorContext, run: RunContext) -> dict[str, Any]:
    """Do what the run asks for."""
    return FeedsRun(context, run).collect()


def _item_limit(run: RunContext, default: int) -> int:
    value = run.arguments.get("items", default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(
            f"the argument 'items' of a feeds job must be a whole number, not {value!r}",
            code="arguments",
        )
    return value


def _wants(run: RunContext, name: str) -> bool:
    value = run.arguments.get(name, True)
    if not isinstance(value, bool):
        raise UsageError(
            f"the argument {name!r} of a feeds job must be true or false, not {value!r}",
            code="arguments",
        )
    return value
