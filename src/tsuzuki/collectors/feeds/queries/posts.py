"""Posts: statements over `feed_posts`, which is an outbox (`outward.outbox`).

An item has at most one row of the kind `post`, by a unique index; edits and replies are apart by their keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.channels.protocol import Outgoing, PostBody, Sent
from tsuzuki.collectors.feeds.tables import PostKind, feed_posts, item_details
from tsuzuki.model.errors import Conflict
from tsuzuki.outward.outbox import Outbox, OutboxState
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list

OUTBOX = Outbox(feed_posts)
OTHERS_BEFORE = timedelta(hours=2)

_MAYBE_POSTED = [
    state.value for state in (OutboxState.SENT, OutboxState.SENDING, OutboxState.UNSETTLED)
]
_DECIDED = [OutboxState.SENT.value, OutboxState.REFUSED.value]
_POST = bindparam("post_id", type_=BigInteger())
_ITEM = bindparam("item", type_=BigInteger())
_FEED = bindparam("feed", type_=BigInteger())
_SINCE = bindparam("since", type_=UtcTime())
_STORED = (
    "job_name",
    "feed_id",
    "item_id",
    "kind",
    "account",
    "idempotency_key",
    "body",
    "content_hash",
    "created_at",
    "changed_at",
    "sent_by_run",
)
_SELECT = select(feed_posts).where(feed_posts.c.id == _POST)
_OF_ITEM = select(feed_posts).where(feed_posts.c.item_id == _ITEM).order_by(feed_posts.c.id)
_BY_KEY = select(feed_posts).where(feed_posts.c.idempotency_key == bindparam("key", type_=Text()))
_POST_OF_ITEM = _OF_ITEM.where(feed_posts.c.kind == PostKind.POST.value)
_IN_STATE = (
    select(feed_posts)
    .where(
        feed_posts.c.job_name == bindparam("job", type_=Text()),
        feed_posts.c.state == bindparam("in_state", type_=Text()),
    )
    .order_by(feed_posts.c.id)
)
_OF_RUN = (
    select(feed_posts)
    .where(
        feed_posts.c.job_name == bindparam("job", type_=Text()),
        feed_posts.c.sent_by_run == bindparam("run_id", type_=BigInteger()),
    )
    .order_by(feed_posts.c.id)
    .limit(bindparam("most", type_=BigInteger()))
)
_REMOTE_IDS = select(feed_posts.c.remote_id).where(
    feed_posts.c.item_id == _ITEM,
    feed_posts.c.id != _POST,
    feed_posts.c.remote_id.is_not(None),
)
_REMOTE_IDS_OF_FEED = select(feed_posts.c.remote_id).where(
    feed_posts.c.feed_id == _FEED,
    feed_posts.c.state == OutboxState.SENT.value,
    feed_posts.c.changed_at > _SINCE,
    feed_posts.c.remote_id.is_not(None),
)
_SET_REMOTE = (
    update(feed_posts)
    .where(feed_posts.c.id == _POST)
    .values(**parameters_for(feed_posts, "remote_id", "remote_url"))
)
_REWRITE = (
    update(feed_posts)
    .where(feed_posts.c.id == _POST)
    .values(
        **parameters_for(feed_posts, "account", "idempotency_key", "body", "content_hash"),
    )
)
_TIMES = (
    select(feed_posts.c.changed_at)
    .where(
        feed_posts.c.feed_id == _FEED,
        feed_posts.c.state == bindparam("in_state", type_=Text()),
        feed_posts.c.changed_at > _SINCE,
        feed_posts.c.kind == PostKind.POST.value,
    )
    .order_by(feed_posts.c.changed_at.desc())
    .limit(bindparam("most", type_=BigInteger()))
)
_LATER = feed_posts.alias("later")
_LATEST = (
    select(_LATER)
    .where(_LATER.c.item_id == feed_posts.c.item_id)
    .order_by(_LATER.c.id.desc())
    .limit(1)
)
_CHANGED = (
    select(
        *feed_posts.c,
        item_details.c.content_hash.label("new_hash"),
        item_details.c.changed_at.label("article_changed_at"),
        _LATEST.with_only_columns(_LATER.c.id).scalar_subquery().label("latest_id"),
    )
    .join(item_details, item_details.c.item_id == feed_posts.c.item_id)
    .where(
        feed_posts.c.feed_id == _FEED,
        feed_posts.c.state == OutboxState.SENT.value,
        feed_posts.c.changed_at > _SINCE,
        feed_posts.c.kind == PostKind.POST.value,
        feed_posts.c.remote_id.is_not(None),
        item_details.c.changed_at.is_not(None),
        _LATEST.with_only_columns(_LATER.c.content_hash).scalar_subquery()
        != item_details.c.content_hash,
        in_list(_LATEST.with_only_columns(_LATER.c.state).scalar_subquery(), "states"),
    )
    .order_by(feed_posts.c.changed_at)
    .limit(bindparam("most", type_=BigInteger()))
)


@dataclass(frozen=True, kw_only=True)
class NewPost:
    """A post before it is stored."""

    job_name: str
    feed_id: int
    item_id: int
    kind: PostKind
    account: str
    idempotency_key: str
    body: PostBody
    content_hash: str
    """Of the article as the post tells it."""


@dataclass(frozen=True, kw_only=True)
class Post(NewPost):
    """One row of the outbox."""

    id: int
    state: OutboxState
    remote_id: str | None
    remote_url: str | None
    created_at: datetime
    changed_at: datetime
    sent_by_run: int | None
    error: str | None
    looks: int
    """How often it was looked for since an answer to it was lost."""

    absences: int
    """How often in a row it was not there, since it was sent last."""

    next_look_at: datetime | None
    """Of one that is UNSETTLED; None if only a person can settle it."""

    @property
    def outgoing(self) -> Outgoing:
        return Outgoing(
            kind=self.kind, key=self.idempotency_key, body=self.body, created_at=self.created_at
        )


@dataclass(frozen=True, kw_only=True)
class ChangedPost:
    """A post whose article has another content now."""

    post: Post
    content_hash: str
    article_changed_at: datetime
    latest_id: int
    """The last edit of the post or reply to it, or the post itself."""


def intend(connection: Connection, new: NewPost, *, run_id: int, now: datetime) -> Post:
    """Record that a run sends this post from now on. If there is one already it is returned as it stands, except
    that one that is INTENDED, and so surely did not arrive, becomes SENDING with the new text, to the new account."""
    values = {
        **{name: getattr(new, name) for name in _STORED if hasattr(new, name)},
        "kind": new.kind.value,
        "body": new.body.as_dict(),
        "created_at": now,
        "changed_at": now,
        "sent_by_run": run_id,
    }
    row = execute(connection, _add(connection.dialect), values).mapping_or_none()
    if row is not None:
        return post_from(row)
    stored = _stored(connection, new)
    is_ours = stored.state is OutboxState.INTENDED and OUTBOX.move(
        connection,
        stored.id,
        before=OutboxState.INTENDED,
        after=OutboxState.SENDING,
        now=now,
        run_id=run_id,
    )
    if not is_ours:
        return stored
    rewritten = ("account", "idempotency_key", "body", "content_hash")
    execute(
        connection, _REWRITE, {"post_id": stored.id, **{name: values[name] for name in rewritten}}
    )
    return replace(
        stored,
        state=OutboxState.SENDING,
        account=new.account,
        idempotency_key=new.idempotency_key,
        body=new.body,
        content_hash=new.content_hash,
        sent_by_run=run_id,
        changed_at=now,
    )


@lru_cache
def _add(dialect: Dialect) -> Any:
    return (
        insert_into(dialect, feed_posts)
        .values(**parameters_for(feed_posts, *_STORED), state=OutboxState.SENDING.value)
        .on_conflict_do_nothing()
        .returning(feed_posts)
    )


def _stored(connection: Connection, new: NewPost) -> Post:
    """The item's own post, or the one that has its key already."""
    own = post_of_item(connection, new.item_id) if new.kind is PostKind.POST else None
    if own is not None and own.state is not OutboxState.INTENDED:
        return own
    row = execute(connection, _BY_KEY, {"key": new.idempotency_key}).mapping_or_none()
    if row is not None:
        return post_from(row)
    if own is None:
        raise Conflict(f"another run is recording the post of item {new.item_id}")
    return own


def get(connection: Connection, post_id: int) -> Post | None:
    row = execute(connection, _SELECT, {"post_id": post_id}).mapping_or_none()
    return None if row is None else post_from(row)


def post_of_item(connection: Connection, item_id: int) -> Post | None:
    """The item's post, in any state."""
    row = execute(connection, _POST_OF_ITEM, {"item": item_id}).mapping_or_none()
    return None if row is None else post_from(row)


def latest_of_item(connection: Connection, item_id: int) -> Post | None:
    """The last edit of an item's post or reply to it, or the post itself."""
    found = of_item(connection, item_id)
    return found[-1] if found else None


def of_item(connection: Connection, item_id: int) -> list[Post]:
    """The post, the edits and the replies of an item, in their order."""
    return [post_from(row) for row in execute(connection, _OF_ITEM, {"item": item_id}).mappings()]


def in_state(connection: Connection, job_name: str, state: OutboxState) -> list[Post]:
    """The posts of a job in one state, oldest first."""
    where = {"job": job_name, "in_state": state.value}
    return [post_from(row) for row in execute(connection, _IN_STATE, where).mappings()]


def of_run(connection: Connection, job_name: str, run_id: int, *, limit: int) -> list[Post]:
    """What a run of this job sent, or tried to, by their ids."""
    values = {"job": job_name, "run_id": run_id, "most": limit}
    return [post_from(row) for row in execute(connection, _OF_RUN, values).mappings()]


def set_remote(connection: Connection, post_id: int, sent: Sent) -> None:
    """Record what the receiver calls the post."""
    values = {"post_id": post_id, "remote_id": sent.remote_id, "remote_url": sent.remote_url}
    execute(connection, _SET_REMOTE, values)


def other_remote_ids(connection: Connection, post: Post) -> frozenset[str]:
    """What the receiver calls the other posts of the item, and the feed's since shortly before this one."""
    of_item = {"item": post.item_id, "post_id": post.id}
    of_feed = {"feed": post.feed_id, "since": post.created_at - OTHERS_BEFORE}
    found = execute(connection, _REMOTE_IDS, of_item).scalars()
    return frozenset([*found, *execute(connection, _REMOTE_IDS_OF_FEED, of_feed).scalars()])


def times(connection: Connection, feed_id: int, *, since: datetime, most: int) -> list[datetime]:
    """When a feed's posts were made, or may have been, the newest first."""
    values = {"feed": feed_id, "since": since, "most": most}
    found: list[datetime] = []
    # One state at a time: so the newest stand together in the index.
    for state in _MAYBE_POSTED:
        found += execute(connection, _TIMES, {**values, "in_state": state}).scalars()
    return sorted(found, reverse=True)[:most]


def changed(
    connection: Connection, feed_id: int, *, since: datetime, most: int
) -> list[ChangedPost]:
    """Posts of a feed, made after `since`, whose article has another content than the last that was told."""
    values = {"feed": feed_id, "since": since, "most": most, "states": _DECIDED}
    rows = execute(connection, _CHANGED, values).mappings()
    return [
        ChangedPost(
            content_hash=row.pop("new_hash"),
            article_changed_at=row.pop("article_changed_at"),
            latest_id=row.pop("latest_id"),
            post=post_from(row),
        )
        for row in rows
    ]


def post_from(row: Mapping[str, Any]) -> Post:
    parsed = {
        "kind": PostKind(row["kind"]),
        "state": OutboxState(row["state"]),
        "body": PostBody.from_dict(row["body"]),
    }
    return Post(**{**row, **parsed})
