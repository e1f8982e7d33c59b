"""The steps of one item: read its page, screen it, summarise it, post it.

Every step is stored before the next one starts, so none is done, or paid for, twice: a run that continues after a
crash takes up the stored page, verdict and summary. How a step ended is stored in one transaction with what follows
from it, or with the start of the next step. An item that cannot go on yields a value that says why; what stops the
whole job is an error.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from tsuzuki.collectors.feeds.fetching.feed_set import RunFeed
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.items.page import ItemPage, PageFailed
from tsuzuki.collectors.feeds.model.budget import Refusal
from tsuzuki.collectors.feeds.model.calls import ModelCall, ModelCalls, result_of
from tsuzuki.collectors.feeds.model.prompts import (
    prompt_version,
    screening_question,
    summary_question,
)
from tsuzuki.collectors.feeds.model.protocol import (
    ModelAnswer,
    ModelBlocked,
    ModelUnavailable,
    Question,
    Verdict,
)
from tsuzuki.collectors.feeds.posting.output_guard import OutputRefused
from tsuzuki.collectors.feeds.posting.posting import Delivery, RunPosting
from tsuzuki.collectors.feeds.posting.text import compose_post
from tsuzuki.collectors.feeds.queries import item_moves, pages, steps
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.pages import StoredPage
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.collectors.feeds.queries.steps import StepEnd, StepRecord, last_done_of
from tsuzuki.collectors.feeds.tables import PreparationStep, StepState
from tsuzuki.engine.run_context import RunContext
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed, SourceUnavailable
from tsuzuki.store.sql.database import Connection, Database

ReadPage: TypeAlias = Callable[[StoredItem, RunFeed], ItemPage]
"""Downloads the page of an item. Raises `PageFailed`."""

PrefetchPage: TypeAlias = Callable[[StoredItem, RunFeed], None]
"""Starts to download the page of the item that is probably next."""


@dataclass(frozen=True, kw_only=True)
class PutOff:
    """The item is to be deferred for this reason."""

    reason: ItemReason
    problem: str
    pause_seconds: float = 0.0
    not_before: datetime | None = None
    """When its post is looked for; None: after the usual pause."""


@dataclass(frozen=True, kw_only=True)
class ModelLimited:
    """The model asks for a pause; its answer did not come."""

    limited: RateLimitedUntil


@dataclass(frozen=True, kw_only=True)
class AccountLimited:
    """The account's server asks for a pause; the post was not taken."""

    limited: RateLimitedUntil


@dataclass(frozen=True, kw_only=True)
class CapReached:
    """Another run has made the last post that the feed may make for now."""

    open_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Held:
    """The item waits for a person."""


Stopped: TypeAlias = PutOff | Refusal | ModelLimited | AccountLimited | CapReached
"""Why an item goes no further now. All but `PutOff` are no doing of the item's."""

Advanced: TypeAlias = Delivery | Held | Stopped
"""How far an item came. What became of its post is not stored yet."""


@dataclass(frozen=True, kw_only=True)
class Download:
    """A download that has ended, with the page if there is one."""

    end: StepEnd
    started_at: datetime
    page: StoredPage | None = None


@dataclass(frozen=True, kw_only=True)
class UnstoredStep:
    """What has happened and is not stored yet."""

    download: Download | None = None
    call: ModelCall | None = None
    answer: ModelAnswer | None = None
    problem: SourceFailed | None = None
    is_worth: bool = False
    """It was found worth a post, and is to become pending."""


@dataclass(kw_only=True)
class Work:
    """An item that is worked on, as it is stored now. `steps` are those of earlier runs."""

    item: StoredItem
    feed: RunFeed
    steps: Sequence[StepRecord] = ()
    following: tuple[StoredItem, RunFeed] | None = None
    """The item whose page is read while this one waits for its model."""

    ended: UnstoredStep = field(default_factory=UnstoredStep)

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
        posting: RunPosting,
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
        """As far as the item goes now. Raises what stops the job: a wrong model, a stopped account."""
        stopped = self._learn_limits(work)
        if stopped is not None:
            return stopped
        done = last_done_of(work.steps, PreparationStep.SUMMARY)
        is_pending = work.item.state.status is ItemStatus.PENDING
        if done is not None and _is_wanted(done, work):
            # It was found worth a post before, and only the post is missing.
            work.note(is_worth=not is_pending)
            return self._post(work, str(done.result["text"]))
        page = self._page(work)
        if isinstance(page, PutOff):
            return page
        if work.following is not None:
            self._prefetch(*work.following)
        stopped = None if is_pending else self._screen(work, page)
        if stopped is not None:
            return stopped
        summary = self._summarise(work, page)
        return self._post(work, summary) if isinstance(summary, str) else summary

    def _learn_limits(self, work: Work) -> Stopped | None:
        """Ask the account's server before anything is paid for: asked after an answer, a crash would lose it."""
        if _is_held(work):
            return None
        try:
            self._posting.limits(work.feed.options.account)
        except RateLimitedUntil as limited:
            return AccountLimited(limited=limited)
        except SourceUnavailable as problem:
            return PutOff(reason=ItemReason.API_FAILED, problem=problem.message)
        return None

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
        work.ended = UnstoredStep()

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

    def _page(self, work: Work) -> StoredPage | PutOff:
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
            return PutOff(
                reason=failed.reason,
                problem=str(failed),
                pause_seconds=failed.retry_after_seconds or 0.0,
            )
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
        self, connection: Connection, item: StoredItem, download: Download, now: datetime
    ) -> None:
        if download.page is not None:
            pages.store(connection, download.page)
        steps.record(
            connection,
            item_id=item.id,
            run_id=self._run.id,
            step=PreparationStep.DOWNLOAD,
            end=download.end,
            started_at=download.started_at,
            now=now,
        )

    # --- model ----------------------------------------------------------------------------------

    def _screen(self, work: Work, page: StoredPage) -> Stopped | None:
        """Find out whether the item is worth a post: then it becomes pending."""
        verdict = self._verdict(work, page) if work.feed.options.screening else Verdict.WORTH
        match verdict:
            case Verdict.WORTH:
                work.note(is_worth=True)
                return None
            case Verdict.NOT_WORTH:
                return PutOff(
                    reason=ItemReason.NOT_VALUABLE,
                    problem="the model does not consider it worth a post",
                )
            case Verdict.NOT_READY:
                return PutOff(reason=ItemReason.PAGE_NOT_READY, problem="the page is not ready yet")
            case _:
                return verdict

    def _verdict(self, work: Work, page: StoredPage) -> Verdict | Stopped:
        item = work.item
        question = screening_question(
            work.feed.options, title=item.title, url=item.url, text=page.text
        )
        answer = self._ask(work, question)
        return Verdict(answer["verdict"]) if isinstance(answer, Mapping) else answer

    def _summarise(self, work: Work, page: StoredPage) -> str | Stopped:
        item = work.item
        question = summary_question(
            work.feed.options, title=item.title, url=item.url, text=page.text
        )
        answer = self._ask(work, question)
        return str(answer["text"]) if isinstance(answer, Mapping) else answer

    def _ask(self, work: Work, question: Question) -> Mapping[str, Any] | Stopped:
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
        match found:
            case ModelCall():
                return self._answer(work, found)
            case Refusal():
                return found
            case StepRecord(state=StepState.FAILED):
                return PutOff(
                    reason=ItemReason.API_FAILED, problem=f"rejected before: {found.error}"
                )
            case _:
                return dict(found.result)

    def _answer(self, work: Work, call: ModelCall) -> Mapping[str, Any] | Stopped:
        try:
            answer = call.model.ask(call.question)
        except RateLimitedUntil as limited:
            work.note(call=call, problem=limited)
            return ModelLimited(limited=limited)
        except (ModelBlocked, ModelUnavailable) as problem:
            work.note(call=call, problem=problem)
            return PutOff(reason=ItemReason.API_FAILED, problem=problem.message)
        except SourceFailed as problem:
            work.note(call=call, problem=problem)
            raise
        work.note(call=call, answer=answer)
        return result_of(answer)

    # --- post -----------------------------------------------------------------------------------

    def _post(self, work: Work, summary: str) -> Advanced:
        if _is_held(work):
            return self.hold(work)
        try:
            post = self._intend(work, summary)
            return post if isinstance(post, CapReached) else self._posting.deliver(post)
        except OutputRefused as refused:
            problem = f"the summary cannot be posted: {refused}"
            return PutOff(reason=ItemReason.API_FAILED, problem=problem)
        except RateLimitedUntil as limited:
            return AccountLimited(limited=limited)
        except SourceUnavailable as unavailable:
            return PutOff(reason=ItemReason.API_FAILED, problem=unavailable.message)

    def _intend(self, work: Work, summary: str) -> Post | CapReached:
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
            if left.count <= 0:
                return CapReached(open_at=left.open_at)
            return self._posting.intend(
                connection,
                feed_id=feed.id,
                item_id=item.id,
                account=account,
                body=body,
                content_hash=item.content_hash,
            )

    def hold(self, work: Work) -> Held:
        """Leave the post to a person."""
        with self.transaction(work) as (connection, _now):
            item_moves.hold_for_approval(connection, work.item, run_id=self._run.id)
        return Held()


def _is_held(work: Work) -> bool:
    """Whether the post waits for a person."""
    return work.feed.options.hold and not work.item.is_approved


def _is_wanted(summary: StepRecord, work: Work) -> bool:
    """Whether a summary is posted as it is: a person has approved it, or it answers the prompt that the feed has
    now."""
    item = work.item
    question = summary_question(work.feed.options, title=item.title, url=item.url, text="")
    return bool(item.is_approved) or summary.prompt_version == prompt_version(question)
