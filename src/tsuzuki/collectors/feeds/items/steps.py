"""The steps of one item: read its page, screen it, summarise it, post it.

Every step is stored before the next one starts, so none is done, or paid for, twice: a run that continues after a
crash takes up the stored page, verdict and summary. How a step ended is stored in one transaction with what follows
from it, or with the start of the next step.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from typing import Any, TypeAlias, assert_never

from tsuzuki.collectors.feeds.fetching.feed_set import RunFeed
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.items.page import Page, PageFailed
from tsuzuki.collectors.feeds.model.calls import Call, ModelCalls, result_of
from tsuzuki.collectors.feeds.model.prompts import (
    prompt_version,
    screening_question,
    summary_question,
)
from tsuzuki.collectors.feeds.model.protocol import (
    Answer,
    ModelBlocked,
    ModelUnavailable,
    Question,
    Verdict,
)
from tsuzuki.collectors.feeds.posting.output_guard import OutputRefused
from tsuzuki.collectors.feeds.posting.posting import Posting
from tsuzuki.collectors.feeds.posting.text import compose_post
from tsuzuki.collectors.feeds.queries import item_moves, pages, steps
from tsuzuki.collectors.feeds.queries.items import Item
from tsuzuki.collectors.feeds.queries.pages import StoredPage
from tsuzuki.collectors.feeds.queries.steps import StepEnd, StepRecord, last_done_of
from tsuzuki.collectors.feeds.tables import Step, StepState
from tsuzuki.engine.run_context import RunContext
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed, SourceUnavailable
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.database import Connection, Database

ReadPage: TypeAlias = Callable[[Item, RunFeed], Page]
"""Downloads the page of an item. Raises `PageFailed`."""

PrefetchPage: TypeAlias = Callable[[Item, RunFeed], None]
"""Starts to download the page of the item that is probably next."""

OnPosted: TypeAlias = Callable[[Connection, datetime], None]
"""What else is done in the transaction that makes a posted item processed."""


class Advanced(Enum):
    """How far an item came."""

    POSTED = auto()
    HELD = auto()
    """It waits for a person."""


class PutOff(Exception):
    """The item is to be deferred for this reason."""

    def __init__(
        self,
        reason: ItemReason,
        problem: str,
        *,
        pause_seconds: float = 0.0,
        not_before: datetime | None = None,
    ) -> None:
        super().__init__(problem)
        self.reason = reason
        self.pause_seconds = pause_seconds
        self.not_before = not_before
        """When its post is looked for; None: after the usual pause."""


class AccountLimited(Exception):
    """The account's server asks for a pause; the post was not taken."""

    def __init__(self, limited: RateLimitedUntil) -> None:
        super().__init__(limited.message)
        self.until = limited.until


class CapReached(Exception):
    """Another run has made the last post that the feed may make for now."""

    def __init__(self, open_at: datetime | None) -> None:
        super().__init__("its posts are at a cap")
        self.open_at = open_at


@dataclass(frozen=True, kw_only=True)
class Download:
    """A download that has ended, with the page if there is one."""

    end: StepEnd
    started_at: datetime
    page: StoredPage | None = None


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What has happened and is not stored yet."""

    download: Download | None = None
    call: Call | None = None
    answer: Answer | None = None
    problem: SourceFailed | None = None
    is_worth: bool = False
    """It was found worth a post, and is to become pending."""


@dataclass(kw_only=True)
class Work:
    """An item that is worked on, as it is stored now. `steps` are those of earlier runs."""

    item: Item
    feed: RunFeed
    steps: Sequence[StepRecord] = ()
    on_posted: OnPosted | None = None
    following: tuple[Item, RunFeed] | None = None
    """The item whose page is read while this one waits for its model."""

    ended: Ended = field(default_factory=Ended)

    def note(self, **more: Any) -> None:
        """Something has ended; the next transaction for the item stores it."""
        self.ended = replace(self.ended, **more)


class ItemSteps:
    """The steps of the items of one run."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        calls: ModelCalls,
        posting: Posting,
        read_page: ReadPage,
        prefetch: PrefetchPage,
    ) -> None:
        self._run = run
        self._database = database
        self._calls = calls
        self._posting = posting
        self._read_page = read_page
        self._prefetch = prefetch

    def advance(self, work: Work) -> Advanced:
        """As far as the item goes now. Raises `PutOff` if that is its own doing; `BudgetSpent`, `RateLimitedUntil`
        (of the model), `AccountLimited` and what stops the job if it is not."""
        self._learn_limits(work)
        done = last_done_of(work.steps, Step.SUMMARY)
        is_pending = work.item.state.status is ItemStatus.PENDING
        if done is not None and _is_wanted(done, work):
            # It was found worth a post before, and only the post is missing.
            work.note(is_worth=not is_pending)
            return self._post(work, str(done.result["text"]))
        page = self._page(work)
        if work.following is not None:
            self._prefetch(*work.following)
        if not is_pending:
            self._screen(work, page)
        return self._post(work, self._summarise(work, page))

    def _learn_limits(self, work: Work) -> None:
        """Ask the account's server before anything is paid for: asked after an answer, a crash would lose it."""
        if _is_held(work):
            return
        try:
            self._posting.limits(work.feed.options.account)
        except RateLimitedUntil as limited:
            raise AccountLimited(limited) from None
        except SourceUnavailable as problem:
            raise PutOff(ItemReason.API_FAILED, problem.message) from None

    @contextmanager
    def transaction(self, work: Work) -> Iterator[tuple[Connection, datetime]]:
        """A transaction for an item, and its time. It first stores what has ended; if it is rolled back, the next one
        does."""
        before = work.item
        try:
            with self._run.transaction() as connection:
                now = self._database.now(connection)
                self._store_ended(connection, work, now)
                yield connection, now
        except BaseException:
            work.item = before
            raise
        work.ended = Ended()

    def _store_ended(self, connection: Connection, work: Work, now: datetime) -> None:
        ended, item = work.ended, work.item
        if ended.download is not None:
            self._store_download(connection, item, ended.download, now)
        if ended.call is not None and ended.answer is not None:
            self._calls.finish(connection, ended.call, ended.answer, now=now)
        elif ended.call is not None and ended.problem is not None:
            self._calls.fail(connection, ended.call, ended.problem, now=now)
        if ended.is_worth:
            work.item = item_moves.move_to_pending(connection, item, run_id=self._run.id, now=now)

    # --- page -----------------------------------------------------------------------------------

    def _page(self, work: Work) -> StoredPage:
        """The page that was screened if the item is pending, else the page as it is now."""
        item = work.item
        if item.state.status is ItemStatus.PENDING:
            with self._database.read() as connection:
                stored = pages.get(connection, item.id)
            if stored is not None:
                return stored
        self._run.raise_if_cancelled()
        started_at = self._database.clock.now()
        try:
            page = self._read_page(item, work.feed)
        except PageFailed as failed:
            end = StepEnd(error_code=failed.reason.name.lower(), error=str(failed))
            work.note(download=Download(end=end, started_at=started_at))
            raise PutOff(
                failed.reason, str(failed), pause_seconds=failed.retry_after_seconds or 0.0
            ) from None
        stored = StoredPage(
            item_id=item.id,
            final_url=page.final_url,
            text=page.text,
            content_hash=page.content_hash,
            downloaded_at=started_at,
        )
        end = StepEnd(result={"characters": len(page.text), "notes": list(page.notes)})
        work.note(download=Download(end=end, started_at=started_at, page=stored))
        return stored

    def _store_download(
        self, connection: Connection, item: Item, download: Download, now: datetime
    ) -> None:
        if download.page is not None:
            pages.store(connection, download.page)
        steps.record(
            connection,
            item_id=item.id,
            run_id=self._run.id,
            step=Step.DOWNLOAD,
            end=download.end,
            started_at=download.started_at,
            now=now,
        )

    # --- model ----------------------------------------------------------------------------------

    def _screen(self, work: Work, page: StoredPage) -> None:
        """Find out whether the item is worth a post: then it becomes pending."""
        verdict = self._verdict(work, page) if work.feed.options.screening else Verdict.WORTH
        match verdict:
            case Verdict.WORTH:
                work.note(is_worth=True)
            case Verdict.NOT_WORTH:
                raise PutOff(ItemReason.NOT_VALUABLE, "the model finds it not worth a post")
            case Verdict.NOT_READY:
                raise PutOff(ItemReason.PAGE_NOT_READY, "the page is not ready yet")
            case _:
                assert_never(verdict)

    def _verdict(self, work: Work, page: StoredPage) -> Verdict:
        item = work.item
        question = screening_question(
            work.feed.options, title=item.title, url=item.url, text=page.text
        )
        return Verdict(self._ask(work, question)["verdict"])

    def _summarise(self, work: Work, page: StoredPage) -> str:
        item = work.item
        question = summary_question(
            work.feed.options, title=item.title, url=item.url, text=page.text
        )
        return str(self._ask(work, question)["text"])

    def _ask(self, work: Work, question: Question) -> Mapping[str, Any]:
        """The answer to a question, of before or by one request. The next transaction for the item stores it. A run
        that is to stop asks nothing more; its item is free again for the next one."""
        if self._run.cancelled:
            with self.transaction(work):
                pass  # the verdict is paid for: it is stored before the run stops
        self._run.raise_if_cancelled()
        with self.transaction(work) as (connection, now):
            found = self._calls.known(work.steps, work.feed, question) or self._calls.start(
                connection, work.item, work.feed, question, run_id=self._run.id, now=now
            )
        if isinstance(found, Call):
            return self._answer(work, found)
        if found.state is StepState.FAILED:
            raise PutOff(ItemReason.API_FAILED, f"refused before: {found.error}")
        return dict(found.result)

    def _answer(self, work: Work, call: Call) -> Mapping[str, Any]:
        try:
            answer = call.model.ask(call.question)
        except SourceFailed as problem:
            work.note(call=call, problem=problem)
            if isinstance(problem, ModelBlocked | ModelUnavailable):
                raise PutOff(ItemReason.API_FAILED, problem.message) from None
            raise
        work.note(call=call, answer=answer)
        return result_of(answer)

    # --- post -----------------------------------------------------------------------------------

    def _post(self, work: Work, summary: str) -> Advanced:
        if _is_held(work):
            return self._hold(work)
        try:
            return self._send(work, summary)
        except OutputRefused as refused:
            raise PutOff(
                ItemReason.API_FAILED, f"the summary cannot be posted: {refused}"
            ) from None
        except RateLimitedUntil as limited:
            raise AccountLimited(limited) from None
        except SourceUnavailable as problem:
            raise PutOff(ItemReason.API_FAILED, problem.message) from None

    def _send(self, work: Work, summary: str) -> Advanced:
        feed, item = work.feed, work.item
        account = feed.options.account
        body = compose_post(
            feed.options,
            title=item.title,
            url=item.url,
            canonical_url=item.canonical_url,
            summary=summary,
            limits=self._posting.limits(account),
            author=item.author,
            feed_title=feed.title,
        )
        with self.transaction(work) as (connection, now):
            left = self._posting.room_for(connection, feed.id, item.id, feed.options.caps, now=now)
            post = None
            if left.count > 0:
                post = self._posting.intend(
                    connection,
                    feed_id=feed.id,
                    item_id=item.id,
                    account=account,
                    body=body,
                    content_hash=item.content_hash,
                )
        if post is None:
            raise CapReached(left.open_at)
        outcome = self._posting.send(
            post, on_sent=lambda connection, _post: self._finish(connection, work)
        )
        if outcome.state is OutboxState.SENT:
            return Advanced.POSTED
        look_at = None
        if outcome.state is OutboxState.UNSETTLED:
            look_at = outcome.post.next_look_at
            if look_at is None:
                return self._hold(work)
        problem = outcome.error or "another run is sending the post"
        raise PutOff(ItemReason.API_FAILED, problem, not_before=look_at)

    def _finish(self, connection: Connection, work: Work) -> None:
        now = self._database.now(connection)
        item_moves.finish_posted(connection, work.item, run_id=self._run.id, now=now)
        if work.on_posted is not None:
            work.on_posted(connection, now)

    def _hold(self, work: Work) -> Advanced:
        with self.transaction(work) as (connection, _now):
            item_moves.hold_for_approval(connection, work.item, run_id=self._run.id)
        return Advanced.HELD


def _is_held(work: Work) -> bool:
    """Whether the post waits for a person."""
    return work.feed.options.hold and not work.item.is_approved


def _is_wanted(summary: StepRecord, work: Work) -> bool:
    """Whether a summary is posted as it is: a person has approved it, or it answers the prompt that the feed has
    now."""
    item = work.item
    question = summary_question(work.feed.options, title=item.title, url=item.url, text="")
    return bool(item.is_approved) or summary.prompt_version == prompt_version(question)
