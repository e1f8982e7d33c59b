"""Posting: each post arrives once, also across crashes and lost answers.

The row of the outbox is SENDING before anything leaves, and SENT in one transaction with what follows from it. If
the answer does not come, the account's own posts are looked at; a post that is not among them is UNSETTLED, and
`settling` finds out about it.
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
    OutcomeUnknown,
    PostBody,
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
class PostOutcome:
    """How a post stands after it was sent: SENT, REFUSED, UNSETTLED, or SENDING by another run."""

    state: OutboxState
    post: Post
    error: str | None = None


OnSent: TypeAlias = Callable[[Connection, Post], None]
"""What follows from a post that arrived, in the same transaction."""

OnFailed: TypeAlias = Callable[[Connection, PostOutcome], None]
"""What follows from one that was refused or is unsettled, in the same transaction."""


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
            with self._unanswered.counted(account):
                limits = self.channel(account).read_limits()
        except SourceUnavailable:
            if known is None:
                raise
            return Limits.from_dict(known), now  # the next run asks again
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
        """Send a post that this run intends, once. Raises `AccountStopped`, `RateLimitedUntil`, `SourceUnavailable`
        and `ConfigurationError` if it was surely not taken: then it is INTENDED, and its item untouched."""
        if post.state is not OutboxState.SENDING or post.sent_by_run != self._run.id:
            return self._as_it_stands(post, on_sent, on_failed)
        try:
            channel = self.channel(post.account)
            with self._unanswered.counted(post.account):
                sent = channel.send(post.outgoing)
        except OutcomeUnknown as unknown:
            found = self._look_at_once(channel, post)
            if found is None:
                return self._leave_unsettled(channel, post, unknown.message, on_failed)
            sent = found
        except PostRefused as refused:
            # A second try may be refused because the first arrived after all.
            found = self._look_at_once(channel, post) if post.looks else None
            if found is None:
                return self._refuse(post, refused.message, on_failed)
            sent = found
        except (SourceFailed, ConfigurationError) as failed:
            self._release(post, failed)
            raise
        return self._record(post, OutboxState.SENDING, sent, on_sent)

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

    def record_found(self, post: Post, found: Sent, on_sent: OnSent) -> None:
        """An UNSETTLED post has arrived."""
        self._record(post, OutboxState.UNSETTLED, found, on_sent)

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

    def _as_it_stands(self, post: Post, on_sent: OnSent, on_failed: OnFailed | None) -> PostOutcome:
        outcome = PostOutcome(state=post.state, post=post, error=post.error)
        if post.state is OutboxState.SENT:
            with self._run.transaction() as connection:
                on_sent(connection, post)
        elif post.state in (OutboxState.REFUSED, OutboxState.UNSETTLED) and on_failed:
            with self._run.transaction() as connection:
                on_failed(connection, outcome)
        return outcome

    def _look_at_once(self, channel: Channel, post: Post) -> Sent | None:
        """A post that was sent just now, if it can be found already."""
        if not channel.can_look_up:
            return None
        try:
            return self.look(post, was_just_sent=True)
        except SourceFailed as failed:
            self.note_limit(post, failed)
            return None

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

    def _leave_unsettled(
        self, channel: Channel, post: Post, error: str, on_failed: OnFailed | None
    ) -> PostOutcome:
        """The answer did not come, and the post is not there yet: a later run looks for it, or a person."""
        is_for_runs = channel.can_look_up or channel.is_idempotent
        seconds = self.settling_seconds(post.account)
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            look_at = look_after(seconds, looks=post.looks, now=now) if is_for_runs else None
            unsettled = replace(post, state=OutboxState.UNSETTLED, next_look_at=look_at)
            outcome = PostOutcome(state=OutboxState.UNSETTLED, post=unsettled, error=error)
            is_ours = unsettled_posts.leave(
                connection, post, error=error, look_at=look_at, run_id=self._run.id, now=now
            )
            if is_ours and look_at is not None:
                schedule_look(connection, self._run, look_at)
            if is_ours and on_failed is not None:
                on_failed(connection, outcome)
        self._count(post)
        looks = f"it is looked for at {look_at:%H:%M:%SZ}" if look_at else "a person is to look"
        self._say(f"Post {post.id} is unsettled, {looks}: {error}")
        return outcome

    def _refuse(self, post: Post, error: str, on_failed: OnFailed | None) -> PostOutcome:
        outcome = PostOutcome(state=OutboxState.REFUSED, post=post, error=error)
        then = None if on_failed is None else lambda connection, _: on_failed(connection, outcome)
        self._move(post, OutboxState.SENDING, OutboxState.REFUSED, error, then)
        self._say(f"Post {post.id} is refused: {error}")
        return outcome

    def _count(self, post: Post) -> None:
        if post.kind is PostKind.POST:
            count = self._posted_in_run.get(post.feed_id, 0)
            self._posted_in_run[post.feed_id] = count + 1

    def _release(self, post: Post, failed: SourceFailed | ConfigurationError) -> None:
        self._move(post, OutboxState.SENDING, OutboxState.INTENDED, failed.message, None)
        self.note_limit(post, failed)

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


def _key(
    kind: PostKind, account: str, body: PostBody, content_hash: str, change: ChangedPost | None
) -> str:
    """By the article and not by its row: two installations that post to one account make one post together."""
    parts = [kind.value, account, body.canonical_url]
    if change is not None:
        parts += [change.post.idempotency_key, str(change.latest_id), content_hash]
    return sha256("\n".join(parts).encode()).hexdigest()[:40]
