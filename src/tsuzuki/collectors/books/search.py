"""Continuing one search: page after page, each committed with its cursor, until there is a reason to stop.

A page's books, the cursor, the progress and the reservation of a coming call are one fenced transaction,
and no call is made that was not counted in an earlier one. The next page is prefetched while this one is
committed. So a crash costs the page in flight; only during a commit, the prefetched page too.

The reasons to stop, in the order in which they are looked at: error, quota, max_per_run, exhausted.
So a run that makes the last call of a day stops by quota, even if the page was full or empty. Only the last reason
closes the cursor, and only a good empty answer is that reason: `totalItems` is an estimate that varies, so
a page that reaches it is followed by one more request, and an empty page that contradicts it is requested
once more (decision 51).
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from tsuzuki.collectors.books.options import BooksOptions
from tsuzuki.collectors.books.queries import books, cursors, quota
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.collectors.books.quota import CLOCKS_DIFFER, Allowance, Calls
from tsuzuki.collectors.books.run_log import CollectLog
from tsuzuki.collectors.books.source import PAGE_SIZE_MAX, BookPage, GoogleBooksSource
from tsuzuki.collectors.kit.follow_up import schedule_run_at
from tsuzuki.collectors.kit.prefetch import Prefetch
from tsuzuki.engine.run_context import RunContext, RunStopped
from tsuzuki.model.cursor import Cursor, StopReason, advance, exhaust
from tsuzuki.model.errors import Conflict
from tsuzuki.outward.errors import (
    OutOfQuota,
    RateLimitedUntil,
    SourceFailed,
    SourceUnavailable,
)
from tsuzuki.store.sql.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from tsuzuki.store.sql.database import Connection

PAUSES_SECONDS = (1.0, 5.0, 20.0)
"""Before the second, third and fourth attempt at a page."""

REPORT_SECONDS = 0.25

WAIT_MAX_SECONDS = 130.0
"""If the source asks for a longer pause, a later run goes on."""


class Skipped(StrEnum):
    """Why a collection was not started."""

    BUSY = "busy"
    """Another run has claimed the search."""

    EXHAUSTED = "exhausted"
    """The search was collected to its end."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """How a collection ended. `stop_reason` is None if it was not started."""

    cursor: Cursor
    start_index_before: int = 0
    """Where the cursor was when this collection opened it."""
    stop_reason: StopReason | None = None
    skipped: Skipped | None = None
    pages: int = 0
    returned: int = 0
    total_items: int | None = None
    """What the source said last of how many there are: an estimate."""
    resumes_at: datetime | None = None
    failure: SourceFailed | None = None


class SearchCollection:
    """Built for one run; `collect` once."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        options: BooksOptions,
        allowance: Allowance,
        source: GoogleBooksSource,
        follows_up: bool = True,
    ) -> None:
        """With `follows_up` a run that the quota ends early is followed by one when there is quota again."""
        self._run = run
        self._follows_up = follows_up
        self._database = database
        self._options = options
        self._allowance = allowance
        self._source = source
        self._search = options.search
        self._hash = compute_query_set_hash(options.queries)
        self._log = CollectLog(run, self._hash)
        self._calls = Calls(allowance)
        self._reserved_at = database.clock.now()
        """When the call that was made last was reserved."""
        self._prefetch: Prefetch[BookPage] = Prefetch(name=f"books-{run.id}")
        self._prefetched: Future[BookPage] | None = None
        self._pages = 0
        self._returned = 0
        self._is_doubtful = False
        self._total_items = 0
        self._reported_at: float | None = None
        self._failure: SourceFailed | None = None
        self._resumes_at: datetime | None = None
        self._cursor = Cursor(
            job_name=run.job_name, key=self._hash, updated_at=database.clock.now()
        )

    def collect(self) -> Collected:
        """Fetch pages until there is a reason to stop."""
        stop = self._open()
        before = self._cursor.start_index
        if isinstance(stop, Skipped):
            return Collected(cursor=self._cursor, start_index_before=before, skipped=stop)
        with self._prefetch:
            while stop is None:
                stop = self.tick()
        return Collected(
            cursor=self._cursor,
            start_index_before=before,
            stop_reason=stop,
            pages=self._pages,
            returned=self._returned,
            total_items=self._total_items if self._pages else None,
            resumes_at=self._resumes_at,
            failure=self._failure,
        )

    def tick(self) -> StopReason | None:
        """Fetch one page and store it; the reason to stop, if there is one."""
        self._run.raise_if_cancelled()
        answer = self._fetch()
        if isinstance(answer, StopReason):
            with self._run.transaction() as connection:
                self._require_claim(connection)
                self._close(connection, answer)
            self._log.stop(answer, self._cursor)
            return answer
        return self._store(answer)

    # --- before the first page ------------------------------------------------------------------

    def _open(self) -> Skipped | StopReason | None:
        """Claim the search and reserve the first call; or say why not to start, or why to stop at once."""
        job = self._run.job_name
        with self._run.transaction() as connection:
            claim = cursors.claim_search(
                connection,
                job_name=job,
                query_set_hash=self._hash,
                list_options=self._search.list_options,
                run_id=self._run.id,
            )
            stored = cursors.get_collect_cursor(connection, job, self._hash)
            self._cursor = stored or self._cursor
            if claim.held_by_run != self._run.id:
                self._log.busy(claim.held_by_run)
                return Skipped.BUSY
            self._choose_start(connection, claim)
            if self._cursor.is_exhausted:
                cursors.release_search(connection, job, self._hash)
                self._log.skipped()
                return Skipped.EXHAUSTED
            if not self._take_calls(connection, self._database.now(connection), up_to=1):
                self._close(connection, StopReason.QUOTA)
                self._log.stop(StopReason.QUOTA, self._cursor)
                return StopReason.QUOTA
        return None

    def _choose_start(self, connection: "Connection", claim: cursors.ClaimedSearch) -> None:
        """Where to begin: at the cursor, or at 0 if the list is another one than it counted in, or
        if it was exhausted long enough ago to look again."""
        now = self._database.now(connection)
        wanted = self._search.list_options
        if claim.list_options != wanted:
            self._log.reshaped(claim.list_options, wanted)
            cursors.set_list_options(connection, self._run.job_name, self._hash, wanted)
            self._cursor = self._afresh(now)
            self._save(connection)  # or, after a crash, the next run goes on at the old place
            return
        after = self._options.recheck_exhausted_after
        exhausted_for = (now - self._cursor.updated_at).total_seconds()
        if self._cursor.is_exhausted and after is not None and exhausted_for >= after:
            self._log.reopened(exhausted_for)
            self._cursor = self._afresh(now)

    def _afresh(self, now: datetime) -> Cursor:
        return replace(self._cursor, start_index=0, is_exhausted=False, updated_at=now)

    # --- one page -------------------------------------------------------------------------------

    def _fetch(self) -> BookPage | StopReason:
        """The page at the cursor, requested again while that may help."""
        prefetched, self._prefetched = self._prefetched, None
        request = prefetched.result if prefetched else self._request()
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                return request()
            except OutOfQuota as refusal:
                self._failure = refusal
                return StopReason.QUOTA
            except SourceFailed as failure:
                pause = self._pause_before_retry(failure, pause_seconds)
                if pause is None:
                    self._failure = failure
                    return StopReason.ERROR
            if self._run.wait(pause):
                raise RunStopped
            with self._run.transaction() as connection:
                if not self._take_calls(connection, self._database.now(connection), up_to=1):
                    return StopReason.QUOTA
            request = self._request()
        raise AssertionError("the last pause is None, which ends the loop")

    def _request(self) -> "Callable[[], BookPage]":
        """The request for the page at the cursor; it uses up one reserved call."""
        self._reserved_at = self._calls.spend()
        return partial(
            self._source.page,
            self._search,
            start_index=self._cursor.start_index,
            max_results=self._next_size,
            day_ends_at=self._allowance.refused_day(self._reserved_at).ends_at,
        )

    @property
    def _is_full(self) -> bool:
        return self._returned >= self._options.max_per_run

    @property
    def _next_size(self) -> int:
        return min(PAGE_SIZE_MAX, self._options.max_per_run - self._returned)

    def _pause_before_retry(
        self, failure: SourceFailed, pause_seconds: float | None
    ) -> float | None:
        """How long to wait; None if a retry would not help, or not soon."""
        match failure:
            case RateLimitedUntil(until=until):
                asked = (until - self._database.clock.now()).total_seconds()
                failure.retry_after_seconds = max(asked, 0.0)
            case SourceUnavailable():
                asked = failure.retry_after_seconds or 0.0
            case _:
                return None
        if pause_seconds is None or asked > WAIT_MAX_SECONDS:
            return None
        pause = max(asked, pause_seconds)
        self._log.asking_again(failure, pause)
        return pause

    def _store(self, page: BookPage) -> StopReason | None:
        start_index = self._cursor.start_index
        with self._run.transaction() as connection:
            self._require_claim(connection)
            now = self._database.now(connection)
            books.put_page(
                connection,
                [(start_index + offset, book) for offset, book in page.books],
                job_name=self._run.job_name,
                run_id=self._run.id,
                now=now,
            )
            self._count(page, now)
            is_paid = len(self._calls) > 0
            has_calls = self._take_calls(connection, now, up_to=self._calls_ahead())
            stop = self._reason_to_stop(page, start_index) if has_calls else StopReason.QUOTA
            self._report(is_last=stop is not None)
            if stop is not None:
                self._close(connection, stop)
            else:
                self._save(connection)
                if is_paid and not self._run.cancelled:
                    self._prefetched = self._prefetch.send(self._request())
        self._log.page(self._pages, start_index, page)
        if stop is not None:
            self._log.stop(
                stop,
                self._cursor,
                total_items=page.total_items,
                returned=self._returned,
                max_per_run=self._options.max_per_run,
            )
        return stop

    def _count(self, page: BookPage, now: datetime) -> None:
        self._pages += 1
        self._returned += page.returned
        if page.returned:
            self._cursor = advance(self._cursor, returned=page.returned, now=now)
        self._total_items = page.total_items

    def _calls_ahead(self) -> int:
        """A call for the next page; and one for the page after it, counted in time to be made during
        a commit, unless by what we know the next page is the last."""
        is_last_by_limit = self._options.max_per_run - self._returned <= PAGE_SIZE_MAX
        is_last_by_total = self._total_items <= self._cursor.start_index
        return 1 if is_last_by_limit or is_last_by_total else 2

    def _report(self, *, is_last: bool) -> None:
        """Progress is stored with the page it counts; from a fast source, not with every one."""
        now = self._database.clock.monotonic()
        is_due = self._reported_at is None or now - self._reported_at >= REPORT_SECONDS
        if not (is_last or is_due):
            return
        self._reported_at = now
        left = max(self._total_items - self._cursor.start_index, 0)
        expected = min(self._options.max_per_run, self._returned + left)
        self._run.progress(self._returned, max(self._returned, expected))

    def _reason_to_stop(self, page: BookPage, start_index: int) -> StopReason | None:
        """With calls left, after a page; the cursor is behind it."""
        if self._is_full:
            return StopReason.MAX_PER_RUN
        if page.returned:
            self._is_doubtful = False
            return None
        if page.total_items <= start_index or self._is_doubtful:
            return StopReason.EXHAUSTED
        self._is_doubtful = True
        return None

    # --- in a transaction -----------------------------------------------------------------------

    def _require_claim(self, connection: "Connection") -> None:
        job = self._run.job_name
        if not cursors.is_held_by(connection, job, self._hash, run_id=self._run.id):
            raise Conflict(
                f"the cursor of {job} was reset while this run was collecting",
                hint="Nothing more was stored. The next run starts from the beginning.",
                code="cursor_reset",
            )

    def _take_calls(self, connection: "Connection", now: datetime, *, up_to: int) -> bool:
        """Have so many calls in hand if there are; whether there is one at all."""
        self._calls.take(connection, now, up_to=up_to)
        return len(self._calls) > 0

    def _save(self, connection: "Connection") -> None:
        cursor = self._cursor
        cursors.upsert_collect_cursor(
            connection, cursor.job_name, cursor.key, cursor.start_index, cursor.is_exhausted
        )

    def _close(self, connection: "Connection", stop: StopReason) -> None:
        """For any reason: save the cursor, give back the calls that are not needed, release the search."""
        self._calls.give_back(connection)
        now = self._database.now(connection)
        if stop is StopReason.EXHAUSTED:
            self._cursor = exhaust(self._cursor, now)
        if stop is StopReason.QUOTA:
            self._close_day(connection, now)
        self._save(connection)
        cursors.release_search(connection, self._cursor.job_name, self._hash)

    def _close_day(self, connection: "Connection", now: datetime) -> None:
        """There is no call left: mark the day if the source itself said so, and ask for a run when there are more,
        always at the same moment, so that it is one run however often the quota is met."""
        day = self._allowance.day_of(now)
        if self._failure is not None:  # it is about the day of the request, which may be over
            day = self._allowance.refused_day(self._reserved_at)
            quota.mark_refused(connection, day.name, now=now)
        if self._follows_up and not self._is_full:
            self._resumes_at = day.ends_at + CLOCKS_DIFFER
            schedule_run_at(connection, self._run, self._resumes_at, purpose="books-quota")
