"""Process items: draw the next one, take it as far as it goes, and go on with the one after it.

    draw ── page ── screening ── summary ── post ── processed
              └──────────┴──────────┴────────┴── deferred, or given up after too many times

What is not the item's doing (a spent budget, a quota, a cap, a pause that a server asks for) gives it back as it was
and closes its feed for a while.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never

from tsuzuki.collectors.feeds.fetching.feed_set import Closure, FeedSet, RunFeed
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.items.steps import (
    AccountLimited,
    CapReached,
    Held,
    ItemSteps,
    ModelLimited,
    PutOff,
    Stopped,
    Work,
)
from tsuzuki.collectors.feeds.model.budget import Refusal
from tsuzuki.collectors.feeds.model.calls import ModelCalls
from tsuzuki.collectors.feeds.model.protocol import ModelUnavailable
from tsuzuki.collectors.feeds.options import FeedsOptions
from tsuzuki.collectors.feeds.posting.posting import Delivery, RunPosting
from tsuzuki.collectors.feeds.queries import item_moves, items, steps
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.errors import RateLimitedUntil, SourceRefused
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.database import Connection, Database

WAIT_SECONDS_MIN = 0.5
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
    changes: int = 0
    """Edits and replies that tell how an article changed."""

    deferred: Counter[ItemReason] = field(default_factory=Counter)
    closures: dict[str, Closure] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "drawn": self.drawn,
            "posted": self.posted,
            "awaiting_approval": self.approvals,
            "given_up": self.given_up,
            "changes": self.changes,
            "deferred": {reason.name.lower(): count for reason, count in self.deferred.items()},
            "closed": {
                name: {
                    "why": closure.why,
                    "until": closure.until.isoformat() if closure.until else None,
                }
                for name, closure in self.closures.items()
            },
        }


class Drawn(NamedTuple):
    """The next item, or the answer that there is none."""

    work: Work | None


class ItemProcessing:
    """The items of one run."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        options: FeedsOptions,
        feeds: FeedSet,
        steps: ItemSteps,
        calls: ModelCalls,
        posting: RunPosting,
    ) -> None:
        self._run = run
        self._database = database
        self._options = options
        self._feeds = feeds
        self._steps = steps
        self._calls = calls
        self._posting = posting
        self._failures: Counter[str] = Counter()
        self._done = Processed()
        self._limit = 0

    def process(self, limit: int) -> Processed:
        """Work on up to `limit` items. Raises what stops the job: a wrong model, a stopped account."""
        self._limit = limit
        following: Drawn | None = None
        while self._done.drawn < limit:
            self._run.raise_if_cancelled()
            work = (following or self._draw()).work
            following = None
            if work is None:
                if not self._wait_for_opening():
                    break
                continue
            self._done.drawn += 1
            self._run.progress(self._done.drawn, limit)
            following = self._work_on(work)
        self._done.closures = dict(self._feeds.closures)
        return self._done

    def _draw(self) -> Drawn:
        """The next item of a feed that may post."""
        with self._run.transaction() as connection:
            return Drawn(self._draw_in(connection, self._database.now(connection)))

    def _draw_in(self, connection: Connection, now: datetime) -> Work | None:
        self._feeds.close_silent(self._posting.silent_accounts)
        while feed_ids := self._feeds.open_ids(now):
            item = items.draw(connection, feed_ids=feed_ids, run_id=self._run.id)
            if item is None:
                return None
            room = self._room(connection, item, now)
            if room > 0:
                return Work(
                    item=item,
                    feed=self._feeds.of(item),
                    steps=steps.of_item(connection, item.id),
                    following=self._following(connection, item, feed_ids, room),
                )
            item_moves.give_back(connection, item, run_id=self._run.id)
        return None

    def _following(
        self, connection: Connection, item: StoredItem, feed_ids: list[int], room: int
    ) -> tuple[StoredItem, RunFeed] | None:
        """The item after this one, if this run will draw it and it will need its page."""
        is_last = self._done.drawn + 1 >= self._limit
        if is_last or item.state.status is ItemStatus.PENDING:
            return None
        found = items.following(connection, feed_ids=feed_ids, run_id=self._run.id)
        if found is None or (found.feed_id == item.feed_id and room == 1):
            return None
        return found, self._feeds.of(found)

    def _room(self, connection: Connection, item: StoredItem, now: datetime) -> int:
        """How many posts the caps of the item's feed leave; if none the feed is closed."""
        feed = self._feeds.of(item)
        if feed.options.hold and not item.is_approved:
            return self._limit
        left = self._posting.posts_left(connection, feed.id, feed.options.caps, now=now)
        if left.count == 0:
            self._close_at_cap(feed, left.open_at)
        return left.count

    def _close_at_cap(self, feed: RunFeed, open_at: datetime | None) -> None:
        closure = Closure(why="the feed's post caps are reached", until=open_at, resumes=False)
        self._feeds.close(feed.id, closure)

    def _wait_for_opening(self) -> bool:
        """Wait until the first closed feed is open again, if that is soon."""
        opening = self._feeds.next_opening()
        if opening is None:
            return False
        seconds = (opening - self._database.clock.now()).total_seconds()
        if seconds > WAIT_SECONDS_MAX:
            return False
        # The database's clock decides, and may be behind this one.
        self._run.wait(max(seconds, WAIT_SECONDS_MIN))
        return True

    def _work_on(self, work: Work) -> Drawn | None:
        """One item, as far as it goes. Answers what was drawn with its end, if that was done. An error that stops the
        job leaves the item as it was."""
        try:
            advanced = self._steps.advance(work)
        except (SourceRefused, ConfigurationError):
            self._give_back(work)
            raise
        if isinstance(advanced, Delivery):
            return self._end(work, advanced)
        self._put_back(work, advanced)
        return None

    def _end(self, work: Work, delivery: Delivery) -> Drawn | None:
        """Store what became of the post, and make its item processed if it has arrived. The next item is drawn in the
        same transaction: a commit less for each item."""
        following = None
        with self._run.transaction() as connection:
            outcome = self._posting.store(connection, delivery)
            if outcome.state is OutboxState.SENT and outcome.is_first:
                now = self._database.now(connection)
                item_moves.finish_posted(connection, work.item, run_id=self._run.id, now=now)
                if self._done.drawn < self._limit and not self._run.cancelled:
                    following = Drawn(self._draw_in(connection, now))
        if outcome.state is OutboxState.SENT:
            self._failures[work.feed.options.model] = 0
            self._done.posted += 1
            self._log(f"Item {work.item.id} posted")
        elif outcome.state is OutboxState.UNSETTLED and outcome.post.next_look_at is None:
            self._put_back(work, self._steps.hold(work))
        else:
            is_unsettled = outcome.state is OutboxState.UNSETTLED
            put_off = PutOff(
                reason=ItemReason.API_FAILED,
                problem=outcome.error or "another run is sending the post",
                not_before=outcome.post.next_look_at if is_unsettled else None,
            )
            self._put_back(work, put_off)
        return following

    def _put_back(self, work: Work, stopped: Held | Stopped) -> None:
        """Leave an item that goes no further now, and close what has to wait."""
        feed = work.feed
        match stopped:
            case Held():
                self._note_held(work)
            case PutOff():
                self._watch_model(work)
                self._defer(work, stopped)
            case Refusal():
                self._refuse(work, stopped)
            case CapReached(open_at=open_at):
                self._give_back(work)
                self._close_at_cap(feed, open_at)
            case AccountLimited(limited=limited):
                self._give_back(work)
                closure = Closure(why=limited.message, until=limited.until)
                self._feeds.close_account(feed.options.account, closure)
            case ModelLimited(limited=limited):
                self._park(work, limited)
            case _:
                assert_never(stopped)

    def _note_held(self, work: Work) -> None:
        self._failures[work.feed.options.model] = 0
        self._done.approvals += 1
        item_id = work.item.id
        self._log(f"Item {item_id} waits for approval: tsuzuki feeds approve {item_id}")

    def _watch_model(self, work: Work) -> None:
        """A model that does not answer is not asked about every item of the run."""
        name = work.feed.options.model
        if not isinstance(work.ended.problem, ModelUnavailable):
            self._failures[name] = 0
            return
        self._failures[name] += 1
        if self._failures[name] >= FAILURES_IN_A_ROW_MAX:
            why = f"the model {name} did not respond {FAILURES_IN_A_ROW_MAX} times in a row"
            self._feeds.close_model(name, Closure(why=why, until=None))

    def _defer(self, work: Work, put_off: PutOff) -> None:
        with self._steps.transaction(work) as (connection, now):
            item = work.item
            moved = item_moves.defer(
                connection,
                item,
                put_off.reason,
                retry_limit=self._options.retry_limit,
                not_before=put_off.not_before or now + self._pause(item, put_off),
                run_id=self._run.id,
                now=now,
            )
        if moved.state.status is ItemStatus.PROCESSED:
            self._done.given_up += 1
            self._log(
                f"Item {item.id} dropped after {moved.state.retry_count} tries: {put_off.problem}"
            )
        else:
            self._done.deferred[put_off.reason] += 1
            self._log(f"Item {item.id} deferred: {put_off.problem}")

    def _pause(self, item: StoredItem, put_off: PutOff) -> timedelta:
        """Twice as long each time."""
        doubled = self._options.retry_backoff * 2.0 ** min(item.state.retry_count, 30)
        seconds = min(doubled, self._options.retry_backoff_cap)
        return timedelta(seconds=max(seconds, put_off.pause_seconds))

    def _give_back(self, work: Work) -> None:
        with self._steps.transaction(work) as (connection, _now):
            item_moves.give_back(connection, work.item, run_id=self._run.id)

    def _park(self, work: Work, limited: RateLimitedUntil) -> None:
        """The model asks for a pause: nothing that needs it is drawn until then."""
        model = work.feed.options.model
        with self._steps.transaction(work) as (connection, now):
            item_moves.give_back(connection, work.item, run_id=self._run.id)
            self._calls.park(connection, model, limited, now=now)
        self._feeds.close_model(model, Closure(why=limited.message, until=limited.until))
        self._log(
            f"Model {model} will not be called until {limited.until:%Y-%m-%d %H:%MZ}: "
            f"{limited.message}"
        )

    def _refuse(self, work: Work, refusal: Refusal) -> None:
        """A budget leaves no room. Given back, an article that is too long for any day would be drawn first in every
        run, and stop all that the budget is for."""
        if refusal.is_for_its_size:
            words = f"the text is too long for any day's budget: {refusal.sentence}"
            self._defer(work, PutOff(reason=ItemReason.FILE_TOO_LARGE, problem=words))
        else:
            self._give_back(work)
            self._close_for_budget(work.feed, refusal)

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
