"""Changes: a post whose article says something else now is edited or replied to, if its feed has it so.

Each content of an article is told once. Its page is read and its summary paid for once: the summary is stored
before the edit or the reply leaves, and a run that continues after a crash takes it up. What goes wrong here
leaves the item as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

from tsuzuki.collectors.feeds.fetching.feed_set import Closure, FeedSet, RunFeed
from tsuzuki.collectors.feeds.items.item import ItemReason
from tsuzuki.collectors.feeds.items.page import ItemPage, PageFailed
from tsuzuki.collectors.feeds.items.steps import ReadPage
from tsuzuki.collectors.feeds.model.budget import Refusal
from tsuzuki.collectors.feeds.model.calls import ModelCall, ModelCalls, result_of
from tsuzuki.collectors.feeds.model.prompts import summary_question
from tsuzuki.collectors.feeds.model.protocol import ModelBlocked, ModelUnavailable, Question
from tsuzuki.collectors.feeds.options import FeedsOptions, OnChange
from tsuzuki.collectors.feeds.posting.output_guard import OutputRefused
from tsuzuki.collectors.feeds.posting.posting import RunPosting
from tsuzuki.collectors.feeds.posting.text import compose_post
from tsuzuki.collectors.feeds.queries import items, posts, steps
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.posts import ChangedPost, Post
from tsuzuki.collectors.feeds.queries.steps import BLOCKED, StepEnd, StepRecord
from tsuzuki.collectors.feeds.tables import PostKind, PreparationStep, StepState
from tsuzuki.engine.run_context import RunContext
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed, SourceUnavailable
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.database import Connection, Database

KINDS = {OnChange.EDIT: PostKind.EDIT, OnChange.REPLY: PostKind.REPLY}


class _Failed(Exception):
    """A change cannot be told now; it is tried again, or given up, by what is stored of its steps."""


class _BudgetSpent(Exception):
    """A budget leaves no room for a change: its feed is closed for now."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.until = refusal.open_at


class PostChanges:
    """The changes of the articles that the feeds of one run have posted."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        options: FeedsOptions,
        feeds: FeedSet,
        calls: ModelCalls,
        posting: RunPosting,
        read_page: ReadPage,
    ) -> None:
        self._run = run
        self._database = database
        self._options = options
        self._feeds = feeds
        self._calls = calls
        self._posting = posting
        self._read_page = read_page

    def tell(self) -> int:
        """Tell what has changed; how many edits and replies were sent. Raises what stops the job: a wrong model, a
        stopped account."""
        told = 0
        for post in self._left_over():
            told += self._guarded(self._feeds[post.feed_id], partial(self._resend, post))
        for feed_id in self._feeds.ids:
            feed = self._feeds[feed_id]
            for change in self._changes(feed):
                told += self._guarded(feed, partial(self._tell, feed, change))
        return told

    # --- which ----------------------------------------------------------------------------------

    def _left_over(self) -> list[Post]:
        """Edits and replies that surely have not arrived."""
        with self._database.read() as connection:
            found = posts.in_state(connection, self._run.job_name, OutboxState.INTENDED)
        return [
            post
            for post in found
            if post.kind is not PostKind.POST
            and post.feed_id in self._feeds.ids
            and post.account == self._feeds[post.feed_id].options.account
        ]

    def _changes(self, feed: RunFeed) -> list[ChangedPost]:
        """Not those of an account that the feed had before: it may be gone."""
        options = feed.options
        # What a feed holds is posted only after a person has seen it; an edit could not be held.
        if options.on_change is OnChange.IGNORE or options.hold:
            return []
        with self._database.read() as connection:
            now = self._database.now(connection)
            found = self._posting.changes(connection, feed.id, now=now)
            return [
                change
                for change in found
                if change.post.account == options.account and self._is_due(connection, change, now)
            ]

    def _is_due(self, connection: Connection, change: ChangedPost, now: datetime) -> bool:
        """Not while it pauses after a failure, and not after too many of them."""
        failed = [
            step
            for step in steps.of_item(connection, change.post.item_id)
            if step.state is StepState.FAILED and step.started_at >= change.article_changed_at
        ]
        if not failed:
            return True
        if len(failed) > self._options.retry_limit or failed[-1].error_code == BLOCKED:
            return False
        seconds = self._options.retry_backoff * 2.0 ** min(len(failed) - 1, 30)
        pause = timedelta(seconds=min(seconds, self._options.retry_backoff_cap))
        return now >= failed[-1].started_at + pause

    # --- one of them ----------------------------------------------------------------------------

    def _guarded(self, feed: RunFeed, act: Callable[[], bool]) -> bool:
        """Whether a change was told. What asks for a pause closes the feeds that it concerns."""
        self._run.raise_if_cancelled()
        self._feeds.close_silent(self._posting.silent_accounts)
        if feed.id not in self._feeds.open_ids(self._database.clock.now()):
            return False
        try:
            return act()
        except (_Failed, OutputRefused, SourceUnavailable) as problem:
            self._log(f"Change in feed {feed.name} not announced: {problem}")
        except _BudgetSpent as problem:
            self._feeds.close(feed.id, Closure(why=str(problem), until=problem.until))
            self._log(str(problem))
        return False

    def _tell(self, feed: RunFeed, change: ChangedPost) -> bool:
        with self._database.read() as connection:
            item = items.get(connection, change.post.item_id)
        if item is None:
            raise AssertionError("an item is never deleted")
        summary = self._stored_summary(change)
        if summary is None:
            summary = self._summarise(feed, item, self._page(feed, item))
        with self._pausing(change.post.account):
            limits = self._posting.limits(change.post.account)
        body = compose_post(
            feed.options,
            title=item.title,
            url=item.url,
            canonical_url=item.canonical_url,
            summary=summary,
            limits=limits,
            author=item.author,
            feed_title=feed.title,
        )
        with self._run.transaction() as connection:
            post = self._posting.intend(
                connection,
                feed_id=feed.id,
                item_id=item.id,
                account=change.post.account,
                body=body,
                content_hash=change.content_hash,
                kind=KINDS[feed.options.on_change],
                change=change,
            )
        return self._send(post)

    def _resend(self, post: Post) -> bool:
        with self._run.transaction() as connection:
            intended = self._posting.intend_again(connection, post)
        return self._send(intended)

    def _send(self, post: Post) -> bool:
        with self._pausing(post.account):
            delivery = self._posting.deliver(post)
        with self._run.transaction() as connection:
            outcome = self._posting.store(connection, delivery)
        if outcome.state is OutboxState.SENT:
            self._log(
                f"{post.kind.value} sent for the post of item {post.item_id}: the article changed"
            )
        return outcome.state is OutboxState.SENT

    @contextmanager
    def _pausing(self, account: str) -> Iterator[None]:
        """If the account's server asks for a pause, nothing more is told there until then. Raises `_Failed`."""
        try:
            yield
        except RateLimitedUntil as limited:
            closure = Closure(why=limited.message, until=limited.until)
            self._feeds.close_account(account, closure)
            raise _Failed(limited.message) from None

    # --- page and summary -----------------------------------------------------------------------

    def _stored_summary(self, change: ChangedPost) -> str | None:
        """The summary that an earlier run made of this content, and did not come to send."""
        with self._database.read() as connection:
            done = steps.last_done(connection, change.post.item_id, PreparationStep.SUMMARY)
            latest = posts.get(connection, change.latest_id)
        if done is None or latest is None:
            return None
        is_of_it = done.started_at > max(change.article_changed_at, latest.changed_at)
        return str(done.result["text"]) if is_of_it else None

    def _page(self, feed: RunFeed, item: StoredItem) -> ItemPage:
        with self._run.transaction() as connection:
            step_id = steps.start(
                connection,
                item_id=item.id,
                run_id=self._run.id,
                step=PreparationStep.DOWNLOAD,
                now=self._database.now(connection),
            )
        try:
            page = self._read_page(item, feed)
        except PageFailed as failed:
            end = StepEnd(error_code=failed.reason.name.lower(), error=str(failed))
            self._finish_step(step_id, end)
            raise _Failed(str(failed)) from None
        end = StepEnd(result={"characters": len(page.text), "notes": list(page.notes)})
        self._finish_step(step_id, end)
        return page

    def _finish_step(self, step_id: int, end: StepEnd) -> None:
        with self._run.transaction() as connection:
            steps.finish(connection, step_id, end, now=self._database.now(connection))

    def _summarise(self, feed: RunFeed, item: StoredItem, page: ItemPage) -> str:
        """The summary of the page, stored; by one request, or as it was before."""
        question = summary_question(feed.options, title=item.title, url=item.url, text=page.text)
        known = self._known_or_call(feed, item, question)
        if isinstance(known, Refusal):
            if known.is_for_its_size:
                self._fail_for_size(item, known)
            raise _BudgetSpent(known)
        if isinstance(known, StepRecord):
            if known.state is StepState.FAILED:
                raise _Failed(f"rejected before: {known.error}")
            return str(known.result["text"])
        call = known
        try:
            answer = call.model.ask(question)
        except SourceFailed as problem:
            self._fail(feed, call, problem)
            raise
        with self._run.transaction() as connection:
            self._calls.finish(connection, call, answer, now=self._database.now(connection))
        return str(result_of(answer)["text"])

    def _known_or_call(
        self, feed: RunFeed, item: StoredItem, question: Question
    ) -> StepRecord | ModelCall | Refusal:
        """How the question was answered before, or a call that is recorded, or why there is none."""
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            earlier = steps.of_item(connection, item.id)
            return self._calls.known(earlier, feed, question) or self._calls.start(
                connection, item, feed, question, run_id=self._run.id, now=now
            )

    def _fail_for_size(self, item: StoredItem, refusal: Refusal) -> None:
        """The article is too long for any day of the budget. Stored, so that it is not tried for ever."""
        words = f"the text is too long for any day's budget: {refusal.sentence}"
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            steps.record(
                connection,
                item_id=item.id,
                run_id=self._run.id,
                step=PreparationStep.SUMMARY,
                end=StepEnd(error_code=ItemReason.FILE_TOO_LARGE.name.lower(), error=words),
                started_at=now,
                now=now,
            )
        raise _Failed(words) from None

    def _fail(self, feed: RunFeed, call: ModelCall, problem: SourceFailed) -> None:
        """Store that there was no answer. Raises `_Failed` unless the problem stops the job."""
        model = feed.options.model
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            self._calls.fail(connection, call, problem, now=now)
            if isinstance(problem, RateLimitedUntil):
                self._calls.park(connection, model, problem, now=now)
        if isinstance(problem, RateLimitedUntil):
            self._feeds.close_model(model, Closure(why=problem.message, until=problem.until))
        if isinstance(problem, RateLimitedUntil | ModelBlocked | ModelUnavailable):
            raise _Failed(problem.message) from None

    def _log(self, words: str) -> None:
        self._run.log(f"[feeds][{self._run.job_name}] {words}")
