"""Settling: a post of which it is not known whether it arrived is looked for until that is known.

A server may store a post after its sender gave up, and list it later still. So a post is looked for at growing
intervals (`look_times`), and sent again only after two looks that far apart have not found it. Nothing waits inside a
run: what is not due yet is left to a later one, which is asked for.

    at once         when the answer did not come, or by the run after a crash: this look can only find it
    after 1 minute  it is not there
    5 minutes later it is still not there: it is INTENDED again, and sent when its item is drawn
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from tsuzuki.collectors.feeds.channels.protocol import LookUpFailed, LookUpImpossible, Sent
from tsuzuki.collectors.feeds.posting.look_times import look_after, schedule_look
from tsuzuki.collectors.feeds.posting.posting import RunPosting
from tsuzuki.collectors.feeds.posting.unanswered import silence_of
from tsuzuki.collectors.feeds.queries import posts, unsettled_posts
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.errors import SourceFailed
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.database import Connection, Database

ABSENCES_MIN = 2
"""So often a post must not have been there before it is sent again."""

Follows: TypeAlias = Callable[[Connection, Post], None]
"""What follows for the item of a post, in the same transaction."""


@dataclass(frozen=True, kw_only=True)
class SettledPosts:
    """What became of the posts that were looked for."""

    sent: list[Post] = field(default_factory=list)
    released: list[Post] = field(default_factory=list)
    """They are not there, and are sent again when their items are drawn."""

    unsettled: list[Post] = field(default_factory=list)
    """They are looked for again later, or by a person."""


class Settling:
    """The unsettled posts of a job that are due in one run."""

    def __init__(
        self,
        *,
        run: RunContext,
        database: Database,
        posting: RunPosting,
        on_sent: Follows,
        on_freed: Follows,
    ) -> None:
        """`on_sent` is for a post that has arrived, `on_freed` for one that runs look for no longer: it is not there,
        or a person is to look."""
        self._run = run
        self._database = database
        self._posting = posting
        self._on_sent = on_sent
        self._on_freed = on_freed
        self._settled = SettledPosts()

    def settle(self) -> SettledPosts:
        """Look for each post whose time has come. Another run may do the same: the first to record a look wins."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            due = unsettled_posts.due(connection, self._run.job_name, now=now)
        for post in due:
            self._run.raise_if_cancelled()
            self._settle(post, now)
        return self._settled

    def _settle(self, post: Post, now: datetime) -> None:
        try:
            found = self._look(post)
        except (LookUpImpossible, ConfigurationError) as problem:
            self._leave_to_person(post, problem.message)
        except SourceFailed as problem:
            self._posting.note_limit(post, problem)
            self._look_later(post, looks=post.looks + 1, absences=post.absences)
            self._say(post, problem.message)
        else:
            if found is not None:
                self._store_found(post, found)
            elif self._posting.channel(post.account).is_idempotent:
                self._release(post, post.absences)
            else:
                self._note_absence(post, now)

    def _look(self, post: Post) -> Sent | None:
        """None if it is not there, or need not be looked for because a second one would be dropped."""
        channel = self._posting.channel(post.account)
        if not channel.can_look_up and channel.is_idempotent:
            return None
        if self._posting.is_silent(post.account):
            raise LookUpFailed(silence_of(post.account))
        return self._posting.look(post)

    def _store_found(self, post: Post, found: Sent) -> None:
        with self._run.transaction() as connection:
            if self._posting.store_found(connection, post, found).is_first:
                self._on_sent(connection, post)
        self._settled.sent.append(post)

    def _note_absence(self, post: Post, now: datetime) -> None:
        """It is not there. Right after its sender was cut off that says nothing: it may be under way."""
        settling = timedelta(seconds=self._posting.settling_seconds(post.account))
        is_early = now - post.changed_at < settling
        absences = post.absences + (not is_early)
        if absences >= ABSENCES_MIN:
            self._release(post, absences)
        else:
            self._look_later(post, looks=post.looks + (not is_early), absences=absences)

    def _release(self, post: Post, absences: int) -> None:
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            is_ours = unsettled_posts.note_look(
                connection, post, looks=post.looks + 1, absences=absences, look_at=now
            ) and posts.OUTBOX.move(
                connection,
                post.id,
                before=OutboxState.UNSETTLED,
                after=OutboxState.INTENDED,
                now=now,
                run_id=self._run.id,
            )
            if is_ours:
                self._on_freed(connection, post)
        if is_ours:
            self._settled.released.append(post)

    def _look_later(self, post: Post, *, looks: int, absences: int) -> None:
        seconds = self._posting.settling_seconds(post.account)
        with self._run.transaction() as connection:
            now = self._database.now(connection)
            look_at = look_after(seconds, looks=looks, now=now)
            if unsettled_posts.note_look(
                connection, post, looks=looks, absences=absences, look_at=look_at
            ):
                schedule_look(connection, self._run, look_at)
        self._settled.unsettled.append(post)

    def _leave_to_person(self, post: Post, problem: str) -> None:
        with self._run.transaction() as connection:
            is_ours = unsettled_posts.note_look(
                connection, post, looks=post.looks + 1, absences=post.absences, look_at=None
            )
            if is_ours:
                self._on_freed(connection, post)
        self._settled.unsettled.append(post)
        self._say(post, problem)

    def _say(self, post: Post, problem: str) -> None:
        self._run.log(
            f"[post][{self._run.job_name}] It is unknown whether the {post.kind.value} of item "
            f"{post.item_id} arrived: {problem}; see: tsuzuki feeds explain {post.item_id}"
        )
