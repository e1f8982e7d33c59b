"""Posting: each post arrives once, also across crashes and lost answers.

The row of the outbox is SENDING before anything leaves, and SENT in one transaction with what follows from it. If
the answer does not come, the account's own posts are looked at. Only a post that is not there when nothing can be
under way any more is sent again, under the same key; what cannot be found out stays UNSETTLED.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from tsuzuki.collectors.feeds.channels.factory import open_channel, settings_of
from tsuzuki.collectors.feeds.channels.protocol import (
    Channel,
    Limits,
    LookUpFailed,
    OutcomeUnknown,
    PostBody,
    PostRefused,
    Sent,
)
from tsuzuki.collectors.feeds.options import FeedsSection, PostCaps
from tsuzuki.collectors.feeds.post_caps import PostsLeft, posts_left
from tsuzuki.collectors.feeds.queries import accounts, posts
from tsuzuki.collectors.feeds.queries.posts import ChangedPost, NewPost, Post
from tsuzuki.collectors.feeds.tables import PostKind
from tsuzuki.collectors.kit.errors import RateLimitedUntil, SourceFailed, SourceUnavailable
from tsuzuki.collectors.kit.outbox import OutboxState
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.database import Connection, Database

ATTEMPTS_MAX = 2
LIMITS_KEPT = timedelta(days=1)
CHANGES_WITHIN = timedelta(days=30)
"""An article that changes later is left as it was posted."""

CHANGES_PER_RUN_MAX = 100
UNKNOWN = "it is not known whether the post arrived"


@dataclass(frozen=True, kw_only=True)
class PostOutcome:
    """How a post stands after it was sent: SENT, REFUSED, UNSETTLED, or SENDING by another run."""

    state: OutboxState
    post: Post
    error: str | None = None


OnSent: TypeAlias = Callable[[Connection, Post], None]
"""What follows from a post that arrived, in the same transaction."""

OnFailed: TypeAlias = Callable[[Connection, PostOutcome], None]
"""What follows from one that was refused or is unsettled, in the same transaction."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What became of the posts whose outcome was not known."""

    sent: tuple[Post, ...] = ()
    released: tuple[Post, ...] = ()
    """They are not there, and are sent again when their items are drawn."""

    unsettled: tuple[Post, ...] = ()
    """It cannot be found out, or not now."""


class Posting:
    """The posts of one run. For one thread at a time; `close` it."""

    def __init__(
        self, *, run: RunContext, database: Database, section: FeedsSection, workspace: Path
    ) -> None:
        self._run = run
        self._database = database
        self._section = section
        self._workspace = workspace
        self._channels: dict[str, Channel] = {}
        self._posted_in_run: dict[int, int] = {}
        self._limits: dict[str, tuple[Limits, datetime]] = {}
        """Of the accounts, with when the server was asked."""

    def channel(self, account: str) -> Channel:
        """Raises `ConfigurationError` if the account is not set up."""
        if account not in self._channels:
            self._channels[account] = open_channel(
                settings_of(self._section, account),
                account=account,
                clock=self._database.clock,
                workspace=self._workspace,
            )
        return self._channels[account]

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    def limits(self, account: str) -> Limits:
        """What the account's server allows, asked once a day. Raises `SourceFailed` if that was never known."""
        known = self._limits.get(account)
        if known is not None and self._database.clock.now() - known[1] < LIMITS_KEPT:
            return known[0]
        limits, read_at = self._read_limits(account)
        self._limits[account] = (limits, read_at)
        return limits

    def _read_limits(self, account: str) -> tuple[Limits, datetime]:
        """As they are stored; if that was too long ago, of the server."""
        of = settings_of(self._section, account).base_url
        with self._database.read() as connection:
            now, stored = self._database.now(connection), accounts.get(connection, account)
        known = stored.limits if stored.limits and stored.limits.get("of") == of else None
        if known and stored.limits_read_at and now - stored.limits_read_at < LIMITS_KEPT:
            return Limits.from_dict(known), stored.limits_read_at
        try:
            limits = self.channel(account).read_limits()
        except SourceUnavailable:
            if known is None:
                raise
            return Limits.from_dict(known), stored.limits_read_at or now
        with self._run.transaction() as connection:
            accounts.set_limits(connection, account, {**limits.as_dict(), "of": of}, now=now)
        return limits, now

    def intend(
        self,
        connection: Connection,
        *,
        feed_id: int,
        item_id: int,
        account: str,
        body: PostBody,
        content_hash: str,
        kind: PostKind = PostKind.POST,
        change: ChangedPost | None = None,
    ) -> Post:
        """Record in the caller's transaction that this run sends a post; `change` is what an edit or a reply is
        about. If the item has one already, that is returned as it stands: `send` knows what to do with it."""
        if change is not None:
            body = replace(body, target_id=change.post.remote_id)
        new = NewPost(
            job_name=self._run.job_name,
            feed_id=feed_id,
            item_id=item_id,
            kind=kind,
            account=account,
            idempotency_key=_key(kind, account, body, content_hash, change),
            body=body,
            content_hash=content_hash,
        )
        now = self._database.now(connection)
        return posts.intend(connection, new, run_id=self._run.id, now=now)

    def intend_again(self, connection: Connection, post: Post) -> Post:
        """Record in the caller's transaction that this run sends a post that is INTENDED."""
        now = self._database.now(connection)
        return posts.intend(connection, post, run_id=self._run.id, now=now)

    def send(
        self, post: Post, *, on_sent: OnSent, on_failed: OnFailed | None = None
    ) -> PostOutcome:
        """Send a post that this run intends. Raises `AccountStopped`, `RateLimitedUntil`, `SourceUnavailable` and
        `ConfigurationError` if it was surely not taken: then it is INTENDED, and its item untouched."""
        if post.state is not OutboxState.SENDING or post.sent_by_run != self._run.id:
            return self._as_it_stands(post, on_sent, on_failed)
        try:
            channel = self.channel(post.account)
        except ConfigurationError as wrong:
            self._release(post, wrong)
            raise
        problem: SourceFailed | None = None
        for _ in range(ATTEMPTS_MAX):
            started = self._database.clock.monotonic()
            try:
                sent: Sent | None = channel.send(post.outgoing)
            except OutcomeUnknown as unknown:
                problem = unknown
                try:
                    sent = self._look_until_quiet(channel, post, since=started)
                except SourceFailed as failed:
                    self._note_limit(post, failed)
                    return self._end(post, OutboxState.UNSETTLED, problem.message, on_failed)
            except PostRefused as refused:
                sent = self._look_for_earlier(channel, post) if problem else None
                if sent is None:
                    return self._end(post, OutboxState.REFUSED, refused.message, on_failed)
            except SourceFailed as failed:
                self._release(post, failed)
                raise
            if sent is not None:
                return self._record(post, OutboxState.SENDING, sent, on_sent)
        message = problem.message if problem else UNKNOWN
        return self._end(post, OutboxState.UNSETTLED, message, on_failed)

    def settle(
        self, *, on_sent: OnSent, on_released: Callable[[Connection, Post], None] | None = None
    ) -> Settled:
        """Look for the posts of this job whose sender was cut off or got no answer."""
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            posts.settle(connection, self._run.job_name, now=now)
            started = self._database.clock.monotonic()
            open_posts = posts.in_state(connection, self._run.job_name, OutboxState.UNSETTLED)
        sent: list[Post] = []
        released: list[Post] = []
        unsettled: list[Post] = []
        for post in open_posts:
            self._run.raise_if_cancelled()
            try:
                found = self._look_after_crash(post, now, started)
            except (SourceFailed, ConfigurationError) as problem:
                self._note_limit(post, problem)
                self._say(
                    f"It is not known whether the {post.kind.value} of item {post.item_id} arrived: {problem.message}; "
                    f"see: tsuzuki feeds explain {post.item_id}"
                )
                unsettled.append(post)
            else:
                if found is None:
                    self._move(post, OutboxState.UNSETTLED, OutboxState.INTENDED, None, on_released)
                    released.append(post)
                else:
                    self._record(post, OutboxState.UNSETTLED, found, on_sent)
                    sent.append(post)
        return Settled(sent=tuple(sent), released=tuple(released), unsettled=tuple(unsettled))

    def posts_left(
        self, connection: Connection, feed_id: int, caps: PostCaps, *, now: datetime
    ) -> PostsLeft:
        """How many posts the caps leave a feed."""
        made = self._posted_in_run.get(feed_id, 0)
        return posts_left(connection, feed_id, caps, now=now, posted_in_run=made)

    def room_for(
        self, connection: Connection, feed_id: int, item_id: int, caps: PostCaps, *, now: datetime
    ) -> PostsLeft:
        """The same for one more post, which no other run takes away until this transaction ends. A post that is
        recorded already has its room."""
        if posts.post_of_item(connection, item_id) is not None:
            return PostsLeft(count=1)
        lock_until_commit(connection, f"tsuzuki feeds posts {feed_id}")
        return self.posts_left(connection, feed_id, caps, now=now)

    def changes(self, connection: Connection, feed_id: int, *, now: datetime) -> list[ChangedPost]:
        """Posts of a feed whose article says something else now, each content once."""
        since = now - CHANGES_WITHIN
        return posts.changed(connection, feed_id, since=since, most=CHANGES_PER_RUN_MAX)

    def _as_it_stands(self, post: Post, on_sent: OnSent, on_failed: OnFailed | None) -> PostOutcome:
        outcome = PostOutcome(state=post.state, post=post, error=post.error)
        if post.state is OutboxState.SENT:
            with self._run.transaction() as connection:
                on_sent(connection, post)
        elif post.state in (OutboxState.REFUSED, OutboxState.UNSETTLED) and on_failed:
            with self._run.transaction() as connection:
                on_failed(connection, outcome)
        return outcome

    def _look_until_quiet(self, channel: Channel, post: Post, *, since: float) -> Sent | None:
        """Look for a post that was tried at `since`; if it is not there, once more when nothing is under way."""
        if not channel.can_look_up:
            _require_idempotent(channel)
            return None
        found = self._look(channel, post)
        rest = since + channel.exchange_seconds - self._database.clock.monotonic()
        if found is None and rest > 0:
            self._wait(rest)
            found = self._look(channel, post)
        return found

    def _look_for_earlier(self, channel: Channel, post: Post) -> Sent | None:
        """A second try may be refused because the first arrived after all."""
        try:
            return self._look(channel, post) if channel.can_look_up else None
        except SourceFailed:
            return None

    def _look_after_crash(self, post: Post, now: datetime, started: float) -> Sent | None:
        """The same for a post that another run sent; it was `now` at `started`."""
        channel = self.channel(post.account)
        if not channel.can_look_up:
            _require_idempotent(channel)
            return None
        found = self._look(channel, post)
        quiet_at = started + channel.exchange_seconds - (now - post.changed_at).total_seconds()
        rest = quiet_at - self._database.clock.monotonic()
        if found is None and rest > 0:
            # Its sender may have lost its run and still be sending.
            self._wait(rest)
            found = self._look(channel, post)
        return found

    def _look(self, channel: Channel, post: Post) -> Sent | None:
        with self._database.read() as connection:
            others = posts.other_remote_ids(connection, post)
        return channel.look_up(post.outgoing, others=others)

    def _wait(self, seconds: float) -> None:
        self._run.wait(seconds)
        self._run.raise_if_cancelled()

    def _record(self, post: Post, before: OutboxState, sent: Sent, on_sent: OnSent) -> PostOutcome:
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            is_ours = posts.OUTBOX.move(
                connection,
                post.id,
                before=before,
                after=OutboxState.SENT,
                now=now,
                run_id=self._run.id,
            )
            self._count(post)
            if is_ours:
                posts.set_remote(connection, post.id, sent)
                on_sent(connection, post)
        return PostOutcome(state=OutboxState.SENT, post=post)

    def _end(
        self, post: Post, state: OutboxState, error: str, on_failed: OnFailed | None
    ) -> PostOutcome:
        outcome = PostOutcome(state=state, post=post, error=error)
        then = None if on_failed is None else lambda connection, _: on_failed(connection, outcome)
        self._move(post, OutboxState.SENDING, state, error, then)
        if state is OutboxState.UNSETTLED:
            self._count(post)
        self._say(f"Post {post.id} is {state.value}: {error}")
        return outcome

    def _count(self, post: Post) -> None:
        if post.kind is PostKind.POST:
            count = self._posted_in_run.get(post.feed_id, 0)
            self._posted_in_run[post.feed_id] = count + 1

    def _release(self, post: Post, failed: SourceFailed | ConfigurationError) -> None:
        self._move(post, OutboxState.SENDING, OutboxState.INTENDED, failed.message, None)
        self._note_limit(post, failed)

    def _note_limit(self, post: Post, failed: Exception) -> None:
        if isinstance(failed, RateLimitedUntil):
            with self._run.transaction() as connection:
                accounts.limit_until(connection, post.account, failed.until)

    def _move(
        self,
        post: Post,
        before: OutboxState,
        after: OutboxState,
        error: str | None,
        then: Callable[[Connection, Post], None] | None,
    ) -> None:
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            is_ours = posts.OUTBOX.move(
                connection,
                post.id,
                before=before,
                after=after,
                now=now,
                run_id=self._run.id,
                error=error,
            )
            if is_ours and then is not None:
                then(connection, post)

    def _say(self, words: str) -> None:
        self._run.log(f"[post][{self._run.job_name}] {words}")


def _require_idempotent(channel: Channel) -> None:
    """What cannot be looked up may be sent again only to a receiver that drops the second."""
    if not channel.is_idempotent:
        raise LookUpFailed("the receiver cannot be asked")


def _key(
    kind: PostKind, account: str, body: PostBody, content_hash: str, change: ChangedPost | None
) -> str:
    """By the article and not by its row: two installations that post to one account make one post together."""
    parts = [kind.value, account, body.canonical_url]
    if change is not None:
        parts += [change.post.idempotency_key, str(change.latest_id), content_hash]
    return sha256("\n".join(parts).encode()).hexdigest()[:40]
