"""Fetching: every feed of a job that is due is asked, and what it gives is stored.

Downloads run in threads. One document after the other is parsed, in a process of its own, and stored, so that only
one is held parsed. A changed feed is stored in one fenced transaction, its entries with its state;
unchanged ones share a transaction.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from tsuzuki.collectors.feeds.entries.entry import ParsedFeed
from tsuzuki.collectors.feeds.entries.feed_parser import FeedParser
from tsuzuki.collectors.feeds.entries.found import ParsedEntries, store_entries
from tsuzuki.collectors.feeds.fetching.download import (
    FeedAnswer,
    FeedDownloads,
    NewDocument,
    NotAsked,
    RefusedDownload,
    Unchanged,
)
from tsuzuki.collectors.feeds.fetching.request import FeedRequest, build_request, is_due
from tsuzuki.collectors.feeds.fetching.threads import FeedThreads
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.queries import feeds
from tsuzuki.collectors.feeds.queries.feeds import FailedFetch, Fetched, StoredFeed, UnchangedFeed
from tsuzuki.engine.run_context import RunContext
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed, SourceUnavailable
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.store.sql.database import Database

UNCHANGED_MAX = 250
"""Unchanged feeds in one transaction."""

CUT_OFF = SourceUnavailable(
    "the document is cut off: complete entries were taken, the rest is fetched next time",
    code="cut_off",
)
"""Stored with a feed that is otherwise good."""

CHECK_SECONDS = 0.5
BACKOFF_SECONDS = 300.0
BACKOFF_MAX_SECONDS = 21_600.0
BACKOFF_DOUBLINGS_MAX = 10


@dataclass(frozen=True, kw_only=True)
class FetchSummary:
    """What came of the feeds of a job. The failures are by the feed's name."""

    fetched: int = 0
    unchanged: int = 0
    postponed: int = 0
    new_items: int = 0
    left_out: int = 0
    changed_items: int = 0
    unusable: int = 0
    cut_off: int = 0
    failures: Mapping[str, SourceFailed] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        counts = {name: value for name, value in vars(self).items() if name != "failures"}
        errors = {name: failure.message for name, failure in sorted(self.failures.items())}
        return {**counts, "failed": len(errors), "errors": errors}


class FeedFetcher:
    """Built for one run. The caller opens and closes the downloader."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        section: FeedsSection,
        options: FeedsOptions,
        downloader: SafeDownloader,
    ) -> None:
        self._run = run
        self._database = database
        self._section = section
        self._options = options
        self._downloads = FeedDownloads(downloader, clock=database.clock)
        self._parser = FeedParser()
        self._unchanged: list[UnchangedFeed] = []
        self._summary = FetchSummary()

    def fetch_due(
        self,
        *,
        only: Collection[str] | None = None,
        is_forced: bool = False,
        on_feed: Callable[[int, int], None] | None = None,
    ) -> FetchSummary:
        """Ask all due feeds of the job, or those of `only`; with `is_forced` also those that are not due.
        `on_feed` is told how many of how many are done."""
        requests = self._open(only, is_forced=is_forced)
        threads = FeedThreads(
            self._downloads.ask,
            requests,
            threads=self._section.concurrency,
            name=f"feeds {self._run.id}",
        )
        with closing(self._parser), threads:
            if not all(request.is_conditional for request in requests):
                self._parser.start()  # a document comes for certain
            for done in range(1, len(requests) + 1):
                self._store_next(threads)
                if on_feed is not None:
                    on_feed(done, len(requests))
        self._flush_unchanged()
        return self._summary

    # --- before the requests --------------------------------------------------------------------

    def _open(self, only: Collection[str] | None, *, is_forced: bool) -> list[FeedRequest]:
        """Let the rows follow the options, and claim the feeds to ask."""
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            rows = feeds.sync_feeds(connection, self._run.job_name, self._options, now=now)
            wanted = [
                feed
                for name, feed in rows.items()
                if (only is None or name in only)
                and (is_forced or is_due(feed, self._options.feeds[name], now=now))
            ]
            claimed = feeds.claim(connection, [feed.id for feed in wanted], run_id=self._run.id)
        requests = []
        for feed in wanted:
            if feed.id in claimed:
                request = self._request(feed, now)
                requests += [request] if request else []
        return requests

    def _request(self, feed: StoredFeed, now: datetime) -> FeedRequest | None:
        options = self._options.feeds[feed.name]
        try:
            return build_request(feed, options, self._section, now=now)
        except SourceFailed as failure:
            self._store_failure(feed, RefusedDownload(failure=failure))
            return None

    def _store_next(self, threads: FeedThreads) -> None:
        """Store the next answer, as soon as there is one. Raises `RunStopped` if the run is to stop."""
        found = None
        while found is None:
            self._run.raise_if_cancelled()
            found = threads.next(CHECK_SECONDS)
        request, answer = found
        self._store(request, answer)
        threads.taken(answer)

    # --- after a request ------------------------------------------------------------------------

    def _store(self, request: FeedRequest, answer: FeedAnswer) -> None:
        match answer:
            case Unchanged():
                self._note_unchanged(request.feed, answer)
            case NewDocument():
                self._store_document(request.feed, request.options, answer)
            case RefusedDownload():
                self._store_failure(request.feed, answer)
            case NotAsked(until=until):
                with self._run.transaction() as connection:
                    feeds.postpone(connection, request.feed.id, run_id=self._run.id, until=until)
                self._count(postponed=1)
            case _:
                assert_never(answer)

    def _note_unchanged(self, feed: StoredFeed, answer: Unchanged) -> None:
        self._unchanged.append(
            UnchangedFeed(
                id=feed.id,
                etag=answer.etag,
                last_modified=answer.last_modified,
                moved_to=_moved(feed, answer.moved_to),
                full_at=self._database.clock.now() if answer.is_full else feed.full_at,
            )
        )
        if len(self._unchanged) >= UNCHANGED_MAX:
            self._flush_unchanged()

    def _flush_unchanged(self) -> None:
        if not self._unchanged:
            return
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            feeds.set_unchanged(connection, self._unchanged, run_id=self._run.id, now=now)
        self._count(fetched=len(self._unchanged), unchanged=len(self._unchanged))
        self._unchanged.clear()

    def _store_document(
        self, feed: StoredFeed, options: FeedOptions, document: NewDocument
    ) -> None:
        try:
            parsed = self._parser.parse(
                document.body,
                url=document.url,
                headers=document.headers,
                now=self._database.clock.now(),
                while_waiting=self._run.raise_if_cancelled,
            )
        except SourceFailed as failure:
            self._store_failure(feed, RefusedDownload(failure=failure))
            return
        with self._run.transaction() as connection:
            held = feeds.held_feed(connection, feed.id, run_id=self._run.id)
            if held is None:
                return
            now = self._database.now(connection)
            found = store_entries(connection, held, options, parsed, now=now)
            fetched = _fetched(
                held, document, found, new_at=_new_at(held, parsed, found, now), now=now
            )
            if parsed.is_cut_off:
                # The rest may come under the same validators.
                fetched = replace(
                    fetched, etag=None, last_modified=None, body_hash=None, error=CUT_OFF.message
                )
            fetched = replace(fetched, title=parsed.title or held.title)
            feeds.set_fetched(connection, held.id, fetched, run_id=self._run.id, now=now)
        self._log_found(feed, found)
        if parsed.is_cut_off:
            self._count(cut_off=1)
            self._run.log(f"feed {feed.name}: {CUT_OFF.message}")
        if fetched.is_conditional is False and feed.is_conditional:
            self._run.log(
                f"feed {feed.name}: the server answers 304 although the feed changed; conditional "
                "requests are disabled"
            )

    def _log_found(self, feed: StoredFeed, found: ParsedEntries) -> None:
        self._count(
            fetched=1,
            new_items=found.new,
            left_out=found.left_out,
            changed_items=found.changed,
            unusable=found.unusable,
        )
        counts = {
            "new": found.new,
            "skipped": found.left_out,
            "changed": found.changed,
            "unusable": found.unusable,
        }
        said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        if said:
            self._run.log(f"feed {feed.name}: {said}")

    def _store_failure(self, feed: StoredFeed, refused: RefusedDownload) -> None:
        failure = refused.failure
        with self._run.transaction() as connection:
            held = feeds.held_feed(connection, feed.id, run_id=self._run.id)
            if held is None:
                return
            now = self._database.now(connection)
            failed = FailedFetch(
                error=failure.message,
                failing_since=held.failing_since or now,
                not_before=_not_before(held, failure, now),
                # Where it has moved to there is nothing: back to the address in the job.
                moved_to=None if refused.is_missing else held.moved_to,
                ended_at=now if refused.is_gone and not held.moved_to else None,
            )
            feeds.set_failed(connection, held.id, failed, run_id=self._run.id, now=now)
        failures = {**self._summary.failures, feed.name: failure}
        self._summary = replace(self._summary, failures=failures)
        self._run.log(f"feed {feed.name}: {failure.message}")

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self._summary, name) + count for name, count in more.items()}
        self._summary = replace(self._summary, **counts)


def _fetched(
    feed: StoredFeed,
    document: NewDocument,
    found: ParsedEntries,
    *,
    new_at: datetime | None,
    now: datetime,
) -> Fetched:
    has_news = bool(found.new or found.left_out or found.changed)
    return Fetched(
        etag=document.etag,
        last_modified=document.last_modified,
        moved_to=_moved(feed, document.moved_to),
        is_conditional=feed.is_conditional and not (document.is_304_false and has_news),
        body_hash=document.body_hash,
        title=feed.title,
        first_good_at=feed.first_good_at or now,
        full_at=now,
        new_at=new_at,
    )


def _new_at(
    feed: StoredFeed, parsed: ParsedFeed, found: ParsedEntries, now: datetime
) -> datetime | None:
    """When there was something new last: at a first fetch, when the newest entry was published."""
    if not (found.new or found.left_out):
        return feed.new_at
    dates = [entry.published_at for entry in parsed.entries if entry.published_at]
    return max(dates) if dates and feed.first_good_at is None else now


def _moved(feed: StoredFeed, moved_to: str | None) -> str | None:
    return None if moved_to == feed.url else moved_to


def _not_before(feed: StoredFeed, failure: SourceFailed, now: datetime) -> datetime | None:
    """When to ask again: when the server says, else after a pause that grows from the second failure on."""
    if isinstance(failure, RateLimitedUntil):
        return failure.until
    if failure.retry_after_seconds:
        return now + timedelta(seconds=failure.retry_after_seconds)
    if feed.failures == 0:
        return None
    doublings = min(feed.failures - 1, BACKOFF_DOUBLINGS_MAX)
    return now + timedelta(seconds=min(BACKOFF_SECONDS * 2**doublings, BACKOFF_MAX_SECONDS))
