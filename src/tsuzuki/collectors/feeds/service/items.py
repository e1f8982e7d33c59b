"""Items as people see them: lists, approvals, and having one worked on again."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tsuzuki.collectors.feeds.channels.protocol import Sent
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.options import AccountType, FeedsSection
from tsuzuki.collectors.feeds.queries import (
    decisions,
    item_lists,
    item_moves,
    items,
    posts,
    unsettled_posts,
)
from tsuzuki.collectors.feeds.queries.item_lists import CheckedItem, ItemFilter
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.posts import Post
from tsuzuki.collectors.feeds.service.feed_definitions import NO_FEED, FeedDefinitions, FeedView
from tsuzuki.collectors.feeds.tables import PostKind, PreparationStep, WaitingState
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store import audit
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext

REQUEUED_MAX = 10_000
"""How many items one command may have worked on again."""

ID_DIGITS_MAX = 18
"""An id has 63 bits; every number of so many digits fits into them."""

NO_RUN = 0
"""Holds an item while a person decides about it; no run has this id."""


@dataclass(frozen=True, kw_only=True)
class ItemView:
    """An item, and the feed that owns it."""

    item: StoredItem
    feed: FeedView
    is_unsettled: bool = False
    """It is not known whether its post, or the last edit of it or reply to it, arrived."""

    next_look_at: datetime | None = None
    """From when on a run looks for it; None if a person is to look."""

    @property
    def outcome(self) -> str | None:
        """What became of it in a word or two: its reason, or that it was posted, is held, left out or not settled."""
        state = self.item.state
        if self.item.waiting is WaitingState.APPROVAL:
            return "held"
        if self.is_unsettled and state.reason is not ItemReason.NONE:
            return "not settled"
        if state.status is ItemStatus.PROCESSED and not state.reason:
            return "left out" if state.reason is None else "posted"
        return None if state.reason is None else state.reason.name.lower().replace("_", " ")

    def as_dict(self) -> dict[str, Any]:
        item, state = self.item, self.item.state
        return {
            "id": item.id,
            "job": self.feed.job or None,
            "feed": self.feed.name or None,
            "title": item.title,
            "url": item.url,
            "published_at": item.published_at,
            "status": state.status.name.lower(),
            "reason": None if state.reason is None else state.reason.name.lower(),
            "outcome": self.outcome,
            "retry_count": state.retry_count,
            "waiting": item.waiting,
            "not_before": item.not_before,
            "next_look_at": self.next_look_at,
            "cause": item.cause,
            "created_at": item.created_at,
            "last_checked_at": item.last_checked_at,
        }


@dataclass(frozen=True, kw_only=True)
class PostView:
    """A post, an edit of one or a reply to one."""

    post: Post

    def as_dict(self) -> dict[str, Any]:
        post = self.post
        return {
            "kind": post.kind.value,
            "id": post.id,
            "item_id": post.item_id,
            "state": post.state.value,
            "text": post.body.title or post.body.text,
            "account": post.account,
            "intended_at": post.created_at,
            "changed_at": post.changed_at,
            "remote_url": post.remote_url,
            "error": post.error,
        }


class Items:
    def __init__(self, context: ServiceContext, definitions: FeedDefinitions) -> None:
        self._context = context
        self._database = context.database
        self._definitions = definitions

    def find(
        self, *, before_id: int | None = None, limit: int = 50, **narrowing: Any
    ) -> list[ItemView]:
        """Items, the newest first, from below `before_id` on. See `_filter` for what narrows them."""
        wanted, feeds = self._filter(before_id=before_id, **narrowing)
        with self._database.read() as connection:
            found = item_lists.find(connection, wanted, limit=limit)
            looks = unsettled_posts.next_looks(connection, [item.id for item in found])
        return [_view(item, feed_in(feeds, item), looks) for item in found]

    def last_checked(self, *, of_each_status: int) -> list[CheckedItem]:
        """The items of each status that were looked at last: what changed a moment ago is among them."""
        with self._database.read() as connection:
            return item_lists.last_checked(connection, of_each_status=of_each_status)

    def count(self, *, at_most: int, **narrowing: Any) -> int:
        """How many items there are, counted no further than `at_most`."""
        wanted, _feeds = self._filter(**narrowing)
        with self._database.read() as connection:
            return item_lists.count(connection, wanted, at_most=at_most)

    def _filter(  # noqa: PLR0913 -- one for each filter of the list
        self,
        *,
        feed: str | None = None,
        job: str | None = None,
        statuses: Collection[str] = (),
        reasons: Collection[str] = (),
        waiting: str | None = None,
        is_held: bool | None = None,
        step: str | None = None,
        words: str | None = None,
        before_id: int | None = None,
    ) -> tuple[ItemFilter, dict[int, FeedView]]:
        """The filter, and the feeds of its items by id. States and reasons are named in lower case."""
        feeds = [self._definitions.get(feed)] if feed else self._definitions.find(job)
        by_id = {one.stored.id: one for one in feeds if one.stored is not None}
        wanted = ItemFilter(
            feed_ids=list(by_id) if feed or job else None,
            statuses=[ItemStatus[name.upper()] for name in statuses] or None,
            reasons=[ItemReason[name.upper()] for name in reasons] or None,
            waiting=WaitingState(waiting) if waiting else None,
            is_held=is_held,
            step=PreparationStep(step) if step else None,
            words=words,
            before_id=before_id,
        )
        return wanted, by_id

    def get(self, name: str) -> ItemView:
        """An item by its id or its link. Raises `NotFound`."""
        with self._database.read() as connection:
            is_id = name.isdecimal() and len(name) <= ID_DIGITS_MAX
            item_id = int(name) if is_id else item_lists.id_of_url(connection, name)
            item = None if item_id is None else items.get(connection, item_id)
            looks = unsettled_posts.next_looks(connection, [item.id] if item else [])
        if item is None:
            raise NotFound(
                f"there is no item {name!r}", hint="See: tsuzuki feeds items", code="item_unknown"
            )
        return _view(item, self._feed_of(item), looks)

    def posts_of_run(self, job_name: str, run_id: int, *, limit: int = 50) -> list[PostView]:
        """What a run posted, edited or replied, or tried to; nothing for a run of another kind."""
        with self._database.read() as connection:
            found = posts.of_run(connection, job_name, run_id, limit=limit)
        return [PostView(post=post) for post in found]

    def approve(self, names: Iterable[str], *, dry_run: bool = False) -> list[ItemView]:
        """Let the posts of these items go out with the next run. All of them, or none."""
        views = [self.get(name) for name in names]
        if dry_run:
            with self._database.read() as connection:
                for view in views:
                    _refuse_unless_held(connection, view.item)
            return views
        with self._database.write() as connection:
            for view in views:
                _refuse_unless_held(connection, view.item)
                if not decisions.approve(connection, view.item.id):
                    raise _changed_meanwhile(view.item)
                self._record(connection, "feeds.item.approve", view.item)
        return [self.get(str(view.item.id)) for view in views]

    def settle(
        self, names: Iterable[str], *, was_sent: bool, dry_run: bool = False
    ) -> list[ItemView]:
        """A person has looked: the unsettled posts, edits or replies of these items did arrive; or they, or refused
        ones, are to be sent again. All of them, or none."""
        views = [self.get(name) for name in names]
        if dry_run:
            with self._database.read() as connection:
                for view in views:
                    _post_to_decide(connection, view.item, was_sent=was_sent)
            return views
        with self._database.write() as connection:
            now = self._database.now(connection)
            for view in views:
                self._settle(connection, view.item, was_sent=was_sent, now=now)
        return [self.get(str(view.item.id)) for view in views]

    def _settle(
        self, connection: Connection, item: StoredItem, *, was_sent: bool, now: datetime
    ) -> None:
        post = _post_to_decide(connection, item, was_sent=was_sent)
        after = OutboxState.SENT if was_sent else OutboxState.INTENDED
        if not posts.OUTBOX.move(connection, post.id, before=post.state, after=after, now=now):
            raise _changed_meanwhile(item)
        if was_sent and self._is_named_by_its_key(post):
            posts.set_remote(connection, post.id, Sent(remote_id=post.idempotency_key))
        if post.kind is not PostKind.POST:
            pass  # its item is processed and stays so; the next run sends an edit or a reply that is INTENDED
        elif was_sent:
            item_moves.finish_found(connection, item.id, run_id=NO_RUN, now=now)
        else:
            _let_go_out(connection, item, now)
        self._record(connection, "feeds.post.decide", item)

    def _is_named_by_its_key(self, post: Post) -> bool:
        """Whether the receiver knows the post by the key it was sent with. A Mastodon server has an id of its own."""
        section = self._context.section(FeedsSection, only=("accounts.*.type",))
        account = section.accounts.get(post.account)
        return account is not None and account.type is not AccountType.MASTODON

    def requeue(self, names: Iterable[str], *, dry_run: bool = False) -> list[ItemView]:
        """Have items worked on again: those that are processed from the start, those that are deferred without
        their pause. Raises `Conflict` for what was posted or waits anyway; then none is changed."""
        views = [self.get(name) for name in names]
        if dry_run:
            for view in views:
                _refuse_unless_requeuable(view)
            return views
        with self._database.write() as connection:
            now = self._database.now(connection)
            for view in views:
                self._requeue(connection, view, now)
        return [self.get(str(view.item.id)) for view in views]

    def requeue_by_reason(
        self, reason: str, *, feed: str | None = None, dry_run: bool = False
    ) -> list[ItemView]:
        """The same for every item that was deferred or given up for a reason."""
        views = self.find(feed=feed, reasons=[reason], limit=REQUEUED_MAX)
        names = [str(view.item.id) for view in views if is_requeuable(view)]
        return self.requeue(names, dry_run=dry_run)

    def _requeue(self, connection: Connection, view: ItemView, now: datetime) -> None:
        _refuse_unless_requeuable(view)
        item = view.item
        is_done = item.state.status is ItemStatus.PROCESSED
        moved = (
            decisions.requeue(connection, item, now=now)
            if is_done
            else decisions.end_backoff(connection, item.id)
        )
        if not moved:
            raise _changed_meanwhile(item)
        self._record(connection, "feeds.item.requeue", item)

    def _feed_of(self, item: StoredItem) -> FeedView:
        found = self._definitions.find()
        return feed_in({one.stored.id: one for one in found if one.stored is not None}, item)

    def _record(self, connection: Connection, action: str, item: StoredItem) -> None:
        audit.record(
            connection,
            actor=self._context.actor,
            action=action,
            object_type="feed item",
            object_id=str(item.id),
            before=item.state.status.name.lower(),
        )


def feed_in(feeds: Mapping[int, FeedView], item: StoredItem) -> FeedView:
    """The feed of an item, among those by id."""
    return NO_FEED if item.feed_id is None else feeds[item.feed_id]


def _refuse_unless_held(connection: Connection, item: StoredItem) -> None:
    if item.waiting is not WaitingState.APPROVAL:
        raise Conflict(
            f"item {item.id} is not waiting for approval: it is {item.waiting or 'processed'}",
            hint="See: tsuzuki feeds items --waiting approval",
            code="not_held",
        )
    post = posts.post_of_item(connection, item.id)
    if post is not None and post.state is OutboxState.UNSETTLED:
        raise _unsettled(item)


def _unsettled(item: StoredItem) -> Conflict:
    return Conflict(
        f"it is unknown whether the post of item {item.id} arrived",
        hint=f"Check the receiver, then use: tsuzuki feeds approve {item.id} --was-sent, or "
        "--send-again.",
        code="post_unsettled",
    )


def _post_to_decide(connection: Connection, item: StoredItem, *, was_sent: bool) -> Post:
    """The post of an item that a person may decide about, or its last edit or reply: an earlier one would undo a
    later one. Raises `Conflict` if there is none."""
    allowed = [OutboxState.UNSETTLED] if was_sent else [OutboxState.UNSETTLED, OutboxState.REFUSED]
    post = posts.latest_of_item(connection, item.id)
    if post is None or post.state not in allowed:
        raise Conflict(
            f"item {item.id} has no post to resolve",
            hint=f"See: tsuzuki feeds explain {item.id}",
            code="post_settled",
        )
    return post


def _let_go_out(connection: Connection, item: StoredItem, now: datetime) -> None:
    """Have an item drawn by the next run, whatever it waits for, also if it was given up. One that a run works on is
    left to that run."""
    if decisions.approve(connection, item.id) or decisions.end_backoff(connection, item.id):
        return
    current = items.get(connection, item.id)
    if current is None or current.state.status is not ItemStatus.PROCESSED:
        return
    if not decisions.requeue(connection, current, now=now, is_approved=True):
        raise _changed_meanwhile(item)


def _changed_meanwhile(item: StoredItem) -> Conflict:
    return Conflict(
        f"item {item.id} has changed in the meantime",
        hint=f"Check it again with: tsuzuki feeds explain {item.id}",
        code="item_changed",
    )


def is_requeuable(view: ItemView) -> bool:
    """Whether a person may have it worked on again: it is deferred, or processed and not posted, and its post is not
    looked for."""
    item = view.item
    if view.next_look_at is not None:
        return False
    if item.state.status is ItemStatus.PROCESSED:
        return item.state.reason is not ItemReason.NONE
    return item.waiting is WaitingState.BACKOFF


def _refuse_unless_requeuable(view: ItemView) -> None:
    if is_requeuable(view):
        return
    item = view.item
    was_posted = item.state.reason is ItemReason.NONE
    if view.next_look_at is not None and not was_posted:
        raise _unsettled(item)
    raise Conflict(
        f"item {item.id} was posted" if was_posted else f"item {item.id} is already waiting",
        hint="Posted items are never posted again."
        if was_posted
        else f"See: tsuzuki feeds explain {item.id}",
        code="item_posted" if was_posted else "item_waits",
    )


def _view(item: StoredItem, feed: FeedView, looks: Mapping[int, datetime | None]) -> ItemView:
    is_unsettled = item.id in looks
    return ItemView(
        item=item, feed=feed, is_unsettled=is_unsettled, next_look_at=looks.get(item.id)
    )
