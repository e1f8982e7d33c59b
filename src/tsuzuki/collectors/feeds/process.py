"""Process items: draw the next one, read its page, screen it, summarise it, post it.

    draw ── page ── screening ── summary ── post ── processed
              └──────────┴──────────┴────────┴── deferred, or given up after too many times

Every step is stored before the next one starts, so none is done, or paid for, twice: a run that continues after a
crash takes up the stored page, verdict and summary. What is not the item's doing (a budget, a quota, a cap) gives
the item back as it was and closes its feed for a while.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias, assert_never

from tsuzuki.collectors.feeds.budget import Refusal
from tsuzuki.collectors.feeds.feed_set import Closure, FeedSet, RunFeed
from tsuzuki.collectors.feeds.items import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.model.prompts import screening_question, summary_question
from tsuzuki.collectors.feeds.model.protocol import (
    Answer,
    ModelBlocked,
    ModelUnavailable,
    Question,
    Verdict,
)
from tsuzuki.collectors.feeds.model_calls import BudgetSpent, Call, ModelCalls, result_of
from tsuzuki.collectors.feeds.options import FeedsOptions
from tsuzuki.collectors.feeds.output_guard import OutputRefused
from tsuzuki.collectors.feeds.page import Page, PageFailed
from tsuzuki.collectors.feeds.post_text import compose_post
from tsuzuki.collectors.feeds.posting import Posting, PostOutcome
from tsuzuki.collectors.feeds.queries import item_moves, items, pages, steps
from tsuzuki.collectors.feeds.queries.items import Item
from tsuzuki.collectors.feeds.queries.pages import StoredPage
from tsuzuki.collectors.feeds.queries.steps import StepEnd
from tsuzuki.collectors.feeds.tables import Step, StepState
from tsuzuki.collectors.kit.errors import (
    RateLimitedUntil,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.collectors.kit.outbox import OutboxState
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.store.sql.database import Connection, Database

ReadPage: TypeAlias = Callable[[Item, RunFeed], Page]
"""Downloads the page of an item. Raises `PageFailed`."""

WAIT_SECONDS_MAX = 90.0
"""A pause up to so long is waited for inside the run; a longer one ends its work on the feed."""

FAILURES_IN_A_ROW_MAX = 3
"""After so many unanswered questions in a row a model is left alone for the rest of the run."""


@dataclass(kw_only=True)
class Processed:
    """What became of the items of a run."""

    drawn: int = 0
    posted: int = 0
    approvals: int = 0
    given_up: int = 0
    deferred: Counter[ItemReason] = field(default_factory=Counter)
    closures: dict[str, Closure] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "drawn": self.drawn,
            "posted": self.posted,
            "awaiting_approval": self.approvals,
            "given_up": self.given_up,
            "deferred": {reason.name.lower(): count for reason, count in self.deferred.items()},
            "closed": {
                name: {
                    "why": closure.why,
                    "until": closure.until.isoformat() if closure.until else None,
                }
                for name, closure in self.closures.items()
            },
        }


class _PutOff(Exception):
    """The item is to be deferred for this reason."""

    def __init__(self, reason: ItemReason, problem: str, *, pause_seconds: float = 0.0) -> None:
        super().__init__(problem)
        self.reason = reason
        self.pause_seconds = pause_seconds


class _AccountLimited(Exception):
    """The account's server asks for a pause; the post was not taken."""

    def __init__(self, limited: RateLimitedUntil) -> None:
        super().__init__(limited.message)
        self.until = limited.until


@dataclass(kw_only=True)
class _Work:
    """An item that is worked on, as it is stored now. A call of a model and how it ended are stored together with
    what follows from it."""

    item: Item
    feed: RunFeed
    call: Call | None = None
    answer: Answer | None = None
    problem: SourceFailed | None = None


class ItemProcessing:
    """The items of one run."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        options: FeedsOptions,
        feeds: FeedSet,
        calls: ModelCalls,
        posting: Posting,
        read_page: ReadPage,
    ) -> None:
        self._run = run
        self._database = database
        self._options = options
        self._feeds = feeds
        self._calls = calls
        self._posting = posting
        self._read_page = read_page
        self._failures: Counter[str] = Counter()
        self._done = Processed()

    def process(self, limit: int) -> Processed:
        """Work on up to `limit` items. Raises what stops the job: a wrong model, a stopped account."""
        while self._done.drawn < limit:
            self._run.raise_if_cancelled()
            item = self._draw()
            if item is None:
                if not self._wait_for_opening():
                    break
                continue
            self._done.drawn += 1
            self._run.progress(self._done.drawn, limit)
            self._work_on(_Work(item=item, feed=self._feeds[item.feed_id]))
        self._done.closures = dict(self._feeds.closures)
        return self._done

    def _draw(self) -> Item | None:
        """The next item of a feed that may post."""
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            while feed_ids := self._feeds.open_ids(now):
                item = items.draw(connection, feed_ids=feed_ids, run_id=self._run.id)
                if item is None or self._may_post(connection, item, now):
                    return item
                item_moves.give_back(connection, item, run_id=self._run.id)
            return None

    def _may_post(self, connection: Connection, item: Item, now: datetime) -> bool:
        """Whether the caps of the item's feed leave room for a post; if not the feed is closed."""
        feed = self._feeds[item.feed_id]
        if feed.options.hold and not item.is_approved:
            return True
        left = self._posting.posts_left(connection, feed.id, feed.options.caps, now=now)
        if left.count == 0:
            closure = Closure(why="its posts are at a cap", until=left.open_at, resumes=False)
            self._feeds.close(feed.id, closure)
        return left.count > 0

    def _wait_for_opening(self) -> bool:
        """Wait until the first closed feed is open again, if that is soon."""
        opening = self._feeds.next_opening()
        if opening is None:
            return False
        seconds = (opening - self._database.clock.now()).total_seconds()
        if seconds > WAIT_SECONDS_MAX:
            return False
        self._run.wait(max(seconds, 0.0))
        return True

    def _work_on(self, work: _Work) -> None:
        """One item, as far as it goes. An error that is not its own leaves it as it was."""
        try:
            self._advance(work)
        except _PutOff as put_off:
            self._defer(work, put_off)
        except BudgetSpent as problem:
            self._give_back(work)
            self._close_for_budget(work.feed, problem.refusal)
        except _AccountLimited as limited:
            self._give_back(work)
            closure = Closure(why=str(limited), until=limited.until)
            self._feeds.close_account(work.feed.options.account, closure)
        except RateLimitedUntil as limited:
            self._park(work, limited)
        except (SourceRefused, ConfigurationError):
            self._give_back(work)
            raise

    def _advance(self, work: _Work) -> None:
        summary = self._stored_summary(work.item)
        if summary is None:
            page = self._page(work)
            if work.item.state.status is not ItemStatus.PENDING:
                self._screen(work, page)
            summary = self._summarise(work, page)
        elif work.item.state.status is not ItemStatus.PENDING:
            with self._run.transaction() as connection:
                self._become_pending(connection, work)
        self._post(work, summary)

    # --- page -----------------------------------------------------------------------------------

    def _page(self, work: _Work) -> StoredPage:
        """The page that was screened if the item is pending, else the page as it is now."""
        item = work.item
        if item.state.status is ItemStatus.PENDING:
            with self._database.read() as connection:
                stored = pages.get(connection, item.id)
            if stored is not None:
                return stored
        started_at = self._database.clock.now()
        try:
            page = self._read_page(item, work.feed)
        except PageFailed as failed:
            end = StepEnd(error_code=failed.reason.name.lower(), error=str(failed))
            self._record_download(item, end, started_at)
            raise _PutOff(
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
        self._record_download(item, end, started_at, page=stored)
        return stored

    def _record_download(
        self, item: Item, end: StepEnd, started_at: datetime, *, page: StoredPage | None = None
    ) -> None:
        with self._run.transaction() as connection:
            if page is not None:
                pages.store(connection, page)
            step_id = steps.start(
                connection, item_id=item.id, run_id=self._run.id, step=Step.DOWNLOAD, now=started_at
            )
            steps.finish(connection, step_id, end, now=self._database.now(connection))

    # --- model ----------------------------------------------------------------------------------

    def _screen(self, work: _Work, page: StoredPage) -> None:
        """Make the item pending if it is worth a post."""
        verdict = self._verdict(work, page) if work.feed.options.screening else Verdict.WORTH
        match verdict:
            case Verdict.WORTH:
                with self._run.transaction() as connection:
                    self._become_pending(connection, work)
            case Verdict.NOT_WORTH:
                raise _PutOff(ItemReason.NOT_VALUABLE, "the model finds it not worth a post")
            case Verdict.NOT_READY:
                raise _PutOff(ItemReason.PAGE_NOT_READY, "the page is not ready yet")
            case _:
                assert_never(verdict)

    def _verdict(self, work: _Work, page: StoredPage) -> Verdict:
        item = work.item
        question = screening_question(
            work.feed.options, title=item.title, url=item.url, text=page.text
        )
        return Verdict(self._ask(work, question)["verdict"])

    def _summarise(self, work: _Work, page: StoredPage) -> str:
        item = work.item
        question = summary_question(
            work.feed.options, title=item.title, url=item.url, text=page.text
        )
        return str(self._ask(work, question)["text"])

    def _ask(self, work: _Work, question: Question) -> Mapping[str, Any]:
        """The answer to a question, of before or by one request. It is stored by the next `_settle`."""
        with self._run.transaction() as connection:
            known = self._calls.known(connection, work.item, work.feed, question)
            if known is None:
                work.call = self._calls.start(
                    connection,
                    work.item,
                    work.feed,
                    question,
                    run_id=self._run.id,
                    now=self._database.now(connection),
                )
        if known is not None:
            if known.state is StepState.FAILED:
                raise _PutOff(ItemReason.API_FAILED, f"refused before: {known.error}")
            return dict(known.result)
        return self._answer(work)

    def _answer(self, work: _Work) -> Mapping[str, Any]:
        if work.call is None:
            raise AssertionError("a call is recorded before it is made")
        model = work.call.model
        try:
            work.answer = model.ask(work.call.question)
        except SourceFailed as problem:
            work.problem = problem
            if isinstance(problem, ModelBlocked | ModelUnavailable):
                self._count_failure(work.feed, problem)
                raise _PutOff(ItemReason.API_FAILED, problem.message) from None
            raise
        self._failures[model.name] = 0
        return result_of(work.answer)

    def _count_failure(self, feed: RunFeed, problem: SourceFailed) -> None:
        """A model that does not answer is not asked about every item of the run."""
        if not isinstance(problem, ModelUnavailable):
            return
        name = feed.options.model
        self._failures[name] += 1
        if self._failures[name] >= FAILURES_IN_A_ROW_MAX:
            why = f"the model {name} did not answer {FAILURES_IN_A_ROW_MAX} times in a row"
            self._feeds.close_model(name, Closure(why=why, until=None))

    def _stored_summary(self, item: Item) -> str | None:
        """The summary that was made, if the item was found worth a post before and only the post is missing."""
        with self._database.read() as connection:
            done = steps.last_done(connection, item.id, Step.SUMMARY)
        return None if done is None else str(done.result["text"])

    def _settle(self, connection: Connection, work: _Work, now: datetime) -> None:
        """Store how the call under way has ended."""
        if work.call is not None and work.answer is not None:
            self._calls.finish(connection, work.call, work.answer, now=now)
        elif work.call is not None and work.problem is not None:
            self._calls.fail(connection, work.call, work.problem, now=now)
        work.call = work.answer = work.problem = None

    # --- post -----------------------------------------------------------------------------------

    def _post(self, work: _Work, summary: str) -> None:
        if work.feed.options.hold and not work.item.is_approved:
            self._hold(work)
            return
        try:
            self._send(work, summary)
        except OutputRefused as refused:
            raise _PutOff(
                ItemReason.API_FAILED, f"the summary cannot be posted: {refused}"
            ) from None
        except RateLimitedUntil as limited:
            raise _AccountLimited(limited) from None
        except SourceUnavailable as problem:
            raise _PutOff(ItemReason.API_FAILED, problem.message) from None

    def _send(self, work: _Work, summary: str) -> None:
        feed, item = work.feed, work.item
        body = compose_post(
            feed.options,
            title=item.title,
            url=item.url,
            canonical_url=item.canonical_url,
            summary=summary,
            limits=self._posting.limits(feed.options.account),
            author=item.author,
            feed_title=feed.title,
        )
        with self._run.transaction() as connection:
            self._settle(connection, work, self._database.now(connection))
            post = self._posting.intend(
                connection,
                feed_id=feed.id,
                item_id=item.id,
                account=feed.options.account,
                body=body,
                content_hash=item.content_hash,
            )
        outcome = self._posting.send(
            post, on_sent=lambda connection, _post: self._finish(connection, work)
        )
        self._follow(work, outcome)

    def _follow(self, work: _Work, outcome: PostOutcome) -> None:
        """What follows from a post, except that the item of one that arrived is processed already."""
        item = work.item
        match outcome.state:
            case OutboxState.SENT:
                self._done.posted += 1
                self._log(f"Item {item.id} is posted")
            case OutboxState.UNSETTLED if not self._posting.can_look_up(work.feed.options.account):
                self._hold(work)
            case _:
                raise _PutOff(ItemReason.API_FAILED, outcome.error or "the post did not arrive")

    def _finish(self, connection: Connection, work: _Work) -> None:
        item_moves.finish_posted(
            connection, work.item, run_id=self._run.id, now=self._database.now(connection)
        )

    def _hold(self, work: _Work) -> None:
        with self._run.transaction() as connection:
            self._settle(connection, work, self._database.now(connection))
            item_moves.hold_for_approval(connection, work.item, run_id=self._run.id)
        self._done.approvals += 1
        self._log(f"Item {work.item.id} waits for approval: tsuzuki feeds approve {work.item.id}")

    # --- moves ----------------------------------------------------------------------------------

    def _become_pending(self, connection: Connection, work: _Work) -> None:
        now = self._database.now(connection)
        self._settle(connection, work, now)
        work.item = item_moves.move_to_pending(connection, work.item, run_id=self._run.id, now=now)

    def _defer(self, work: _Work, put_off: _PutOff) -> None:
        item = work.item
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            self._settle(connection, work, now)
            moved = item_moves.defer(
                connection,
                item,
                put_off.reason,
                retry_limit=self._options.retry_limit,
                not_before=now + self._pause(item, put_off),
                run_id=self._run.id,
                now=now,
            )
        if moved.state.status is ItemStatus.PROCESSED:
            self._done.given_up += 1
            self._log(
                f"Item {item.id} is given up after {moved.state.retry_count} tries: {put_off}"
            )
        else:
            self._done.deferred[put_off.reason] += 1
            self._log(f"Item {item.id} is deferred: {put_off}")

    def _pause(self, item: Item, put_off: _PutOff) -> timedelta:
        """Twice as long each time."""
        doubled = self._options.retry_backoff * 2.0 ** min(item.state.retry_count, 30)
        seconds = min(doubled, self._options.retry_backoff_cap)
        return timedelta(seconds=max(seconds, put_off.pause_seconds))

    def _give_back(self, work: _Work) -> None:
        with self._run.transaction() as connection:
            self._settle(connection, work, self._database.now(connection))
            item_moves.give_back(connection, work.item, run_id=self._run.id)

    def _park(self, work: _Work, limited: RateLimitedUntil) -> None:
        """The model asks for a pause: nothing that needs it is drawn until then."""
        model = work.feed.options.model
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            self._settle(connection, work, now)
            item_moves.give_back(connection, work.item, run_id=self._run.id)
            self._calls.park(connection, model, limited, now=now)
        self._feeds.close_model(model, Closure(why=limited.message, until=limited.until))
        self._log(
            f"Model {model} is not asked until {limited.until:%Y-%m-%d %H:%MZ}: {limited.message}"
        )

    def _close_for_budget(self, feed: RunFeed, refusal: Refusal) -> None:
        closure = Closure(why=refusal.sentence, until=refusal.open_at)
        kind, _, _ = refusal.scope.partition(":")
        match kind:
            case "all":
                self._feeds.close_all(closure)
            case "model":
                self._feeds.close_model(feed.options.model, closure)
            case _:
                self._feeds.close(feed.id, closure)
        self._log(closure.why)

    def _log(self, words: str) -> None:
        self._run.log(f"[feeds][{self._run.job_name}] {words}")
