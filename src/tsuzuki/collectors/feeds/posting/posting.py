"""Posting: each post arrives once, also across crashes and lost answers.

The row of the outbox is SENDING before anything leaves, and SENT in one transaction with what follows from it. If
the answer does not come, the account's own posts are looked at; a post that is not among them is UNSETTLED, and
`settling` finds out about it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from tsuzuki.collectors.feeds.channels.factory import open_channel, settings_of
from tsuzuki.collectors.feeds.channels.protocol import (
    Channel,
    OutcomeUnknown,
    PostBody,
    PostLimits,
    PostRefused,
    Sent,
)
from tsuzuki.collectors.feeds.options import FeedsSection, PostCaps
from tsuzuki.collectors.feeds.posting.caps import PostsLeft, posts_left
from tsuzuki.collectors.feeds.posting.look_times import look_after, schedule_look
from tsuzuki.collectors.feeds.posting.unanswered import UnansweredRequests
from tsuzuki.collectors.feeds.queries import accounts, posts, unsettled_posts
from tsuzuki.collectors.feeds.queries.posts import ChangedPost, NewPost, Post
from tsuzuki.collectors.feeds.tables import PostKind
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed, SourceUnavailable
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.database import Connection, Database

LIMITS_KEPT = timedelta(days=1)
CHANGES_WITHIN = timedelta(days=30)
"""An article that changes later is left as it was posted."""

CHANGES_PER_RUN_MAX = 100


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What became of a post, for `RunPosting.store`: SENT, REFUSED or UNSETTLED; or its state, if this run does
    not send it."""

    post: Post
    state: OutboxState
    is_new: bool = True
    """Whether this run has learnt it, and it is to be stored."""

    sent: Sent | None = None
    error: str | None = None
    can_settle: bool = False
    """Whether a later run can find out about a post that is UNSETTLED; else a person must."""


@dataclass(frozen=True, kw_only=True)
class PostOutcome:
    """How a post stands after it was sent: SENT, REFUSED, UNSETTLED, or SENDING by another run."""

    state: OutboxState
    post: Post
    error: str | None = None
    is_first: bool = True
    """Whether this run is the first to store that: then what follows from it is to be stored as well."""


class RunPosting:
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
        self._limits: dict[str, tuple[PostLimits, datetime]] = {}
        """Of the accounts, with when the server was asked."""
        self._unanswered = UnansweredRequests(self._say)

    @property
    def silent_accounts(self) -> list[str]:
        """The accounts whose servers did not answer: this run leaves them alone."""
        return self._unanswered.silent_accounts

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

    def limits(self, account: str) -> PostLimits:
        """What the account's server allows, asked once a day. Raises `SourceFailed` if that was never known."""
        known = self._limits.get(account)
        if known is not None and self._database.clock.now() - known[1] < LIMITS_KEPT:
            return known[0]
        limits, read_at = self._read_limits(account)
        self._limits[account] = (limits, read_at)
        return limits

    def _read_limits(self, account: str) -> tuple[PostLimits, datetime]:
        """As they are stored; if that was too long ago, of the server."""
        of = settings_of(self._section, account).base_url
        with self._database.read() as connection:
            now, stored = self._database.now(connection), accounts.get(connection, account)
        known = stored.limits if stored.limits and stored.limits.get("of") == of else None
        if known and stored.limits_read_at and now - stored.limits_read_at < LIMITS_KEPT:
            return PostLimits.from_dict(known), stored.limits_read_at
        try:
            with self._unanswered.counted(account):
                limits = self.channel(account).read_limits()
        except SourceUnavailable:
            if known is None:
                raise
            return PostLimits.from_dict(known), now  # the next run asks again
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
        about. If the item has one already, that is returned as it stands: `deliver` knows what to do with it."""
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

    def deliver(self, post: Post) -> Delivery:
        """Send a post that this run intends, once; nothing is stored of it yet. Raises `AccountStopped`,
        `RateLimitedUntil`, `SourceUnavailable` and `ConfigurationError` if it was surely not taken: then it is
        INTENDED, and its item untouched."""
        if post.state is not OutboxState.SENDING or post.sent_by_run != self._run.id:
            return Delivery(post=post, state=post.state, error=post.error, is_new=False)
        try:
            channel = self.channel(post.account)
            with self._unanswered.counted(post.account):
                sent = channel.send(post.outgoing)
        except OutcomeUnknown as unknown:
            found = self._look_at_once(channel, post)
            if found is None:
                return Delivery(
                    post=post,
                    state=OutboxState.UNSETTLED,
                    error=unknown.message,
                    can_settle=channel.can_look_up or channel.is_idempotent,
                )
            sent = found
        except PostRefused as refused:
            # A second try may be refused because the first arrived after all.
            found = self._look_at_once(channel, post) if post.looks else None
            if found is None:
                return Delivery(post=post, state=OutboxState.REFUSED, error=refused.message)
            sent = found
        except (SourceFailed, ConfigurationError) as failed:
            self._release(post, failed)
            raise
        return Delivery(post=post, state=OutboxState.SENT, sent=sent)

    def store(self, connection: Connection, delivery: Delivery) -> PostOutcome:
        """Store in the caller's transaction, with what follows from it, what became of a post."""
        post = delivery.post
        if not delivery.is_new:
            return PostOutcome(state=delivery.state, post=post, error=delivery.error)
        if delivery.sent is not None:
            self._count(post)
            return self._store_sent(connection, post, OutboxState.SENDING, delivery.sent)
        if delivery.state is OutboxState.UNSETTLED:
            self._count(post)
            return self._leave_unsettled(connection, delivery)
        is_first = self._move(
            connection, post, OutboxState.SENDING, OutboxState.REFUSED, delivery.error
        )
        self._say(f"Post {post.id} rejected: {delivery.error}")
        return PostOutcome(state=delivery.state, post=post, error=delivery.error, is_first=is_first)

    def is_silent(self, account: str) -> bool:
        return self._unanswered.is_silent(account)

    def settling_seconds(self, account: str) -> float:
        """How long after a post without an answer it is looked for again."""
        return settings_of(self._section, account).settling_time

    def look(self, post: Post, *, was_just_sent: bool = False) -> Sent | None:
        """The post, if the receiver has it. Raises `LookUpFailed`."""
        with self._database.read() as connection:
            others = posts.other_remote_ids(connection, post)
        with self._unanswered.counted(post.account, ends_silence=not was_just_sent):
            return self.channel(post.account).look_up(post.outgoing, others=others)

    def store_found(self, connection: Connection, post: Post, found: Sent) -> PostOutcome:
        """Store in the caller's transaction that an UNSETTLED post has arrived."""
        self._count(post)
        return self._store_sent(connection, post, OutboxState.UNSETTLED, found)

    def note_limit(self, post: Post, failed: Exception) -> None:
        """Keep the pause that the account's server asks for, if it does."""
        if isinstance(failed, RateLimitedUntil):
            with self._run.transaction() as connection:
                accounts.limit_until(connection, post.account, failed.until)

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

    def _look_at_once(self, channel: Channel, post: Post) -> Sent | None:
        """A post that was sent just now, if it can be found already."""
        if not channel.can_look_up:
            return None
        try:
            return self.look(post, was_just_sent=True)
        except SourceFailed as failed:
            self.note_limit(post, failed)
            return None

    def _store_sent(
        self, connection: Connection, post: Post, before: OutboxState, sent: Sent
    ) -> PostOutcome:
        is_first = self._move(connection, post, before, OutboxState.SENT)
        if is_first:
            posts.set_remote(connection, post.id, sent)
        return PostOutcome(state=OutboxState.SENT, post=post, is_first=is_first)

    def _leave_unsettled(self, connection: Connection, delivery: Delivery) -> PostOutcome:
        """The answer did not come, and the post is not there yet: a later run looks for it, or a person."""
        post, error = delivery.post, delivery.error or ""
        seconds = self.settling_seconds(post.account)
        now = self._database.now(connection)
        look_at = look_after(seconds, looks=post.looks, now=now) if delivery.can_settle else None
        is_first = unsettled_posts.leave(
            connection, post, error=error, look_at=look_at, run_id=self._run.id, now=now
        )
        if is_first and look_at is not None:
            schedule_look(connection, self._run, look_at)
        looks = f"looking for it at {look_at:%H:%M:%SZ}" if look_at else "please check it yourself"
        self._say(f"Post {post.id} unsettled, {looks}: {error}")
        unsettled = replace(post, state=OutboxState.UNSETTLED, next_look_at=look_at)
        return PostOutcome(
            state=OutboxState.UNSETTLED, post=unsettled, error=error, is_first=is_first
        )

    def _count(self, post: Post) -> None:
        if post.kind is PostKind.POST:
            count = self._posted_in_run.get(post.feed_id, 0)
            self._posted_in_run[post.feed_id] = count + 1

    def _release(self, post: Post, failed: SourceFailed | ConfigurationError) -> None:
        with self._run.transaction() as connection:
            self._move(connection, post, OutboxState.SENDING, OutboxState.INTENDED, failed.message)
        self.note_limit(post, failed)

    def _move(
        self,
        connection: Connection,
        post: Post,
        before: OutboxState,
        after: OutboxState,
        error: str | None = None,
    ) -> bool:
        return posts.OUTBOX.move(
            connection,
            post.id,
            before=before,
            after=after,
            now=self._database.now(connection),
            run_id=self._run.id,
            error=error,
        )

    def _say(self, words: str) -> None:
        self._run.log(f"[post][{self._run.job_name}] {words}")


def _key(
    kind: PostKind, account: str, body: PostBody, content_hash: str, change: ChangedPost | None
) -> str:
    """By the article and not by its row: two installations that post to one account make one post together."""
    parts = [kind.value, account, body.canonical_url]
    if change is not None:
        parts += [change.post.idempotency_key, str(change.latest_id), content_hash]
    return sha256("\n".join(parts).encode()).hexdigest()[:40]
