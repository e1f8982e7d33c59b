"""Unsettled posts: statements over the rows of `feed_posts` of which it is not known whether they arrived.

A row has the time of its next look, or none if only a person can settle it. A look is noted only if no other was
noted since the row was read, so of two runs that look at once one counts.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    update,
)

from tsuzuki.collectors.feeds.queries.posts import OUTBOX, Post, post_from
from tsuzuki.collectors.feeds.tables import PostKind, feed_posts
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list

_JOB = bindparam("job", type_=Text())
_NOW = bindparam("now", type_=UtcTime())
_POST = bindparam("post_id", type_=BigInteger())
_IS_UNSETTLED = feed_posts.c.state == literal_column(f"'{OutboxState.UNSETTLED.value}'")
_DUE = (
    select(feed_posts)
    .where(feed_posts.c.job_name == _JOB, _IS_UNSETTLED, feed_posts.c.next_look_at <= _NOW)
    .order_by(feed_posts.c.id)
)
_LOOK_AT = (
    update(feed_posts)
    .where(feed_posts.c.id == _POST, _IS_UNSETTLED)
    .values(next_look_at=bindparam("look_at", type_=UtcTime()), absences=0)
)
_NOTE_LOOK = (
    update(feed_posts)
    .where(
        feed_posts.c.id == _POST,
        _IS_UNSETTLED,
        feed_posts.c.next_look_at == bindparam("seen", type_=UtcTime()),
    )
    .values(
        next_look_at=bindparam("look_at", type_=UtcTime()),
        looks=bindparam("look_count", type_=BigInteger()),
        absences=bindparam("absence_count", type_=BigInteger()),
    )
)
_OF_ITEMS = (
    select(feed_posts.c.item_id, func.min(feed_posts.c.next_look_at))
    .where(_IS_UNSETTLED, in_list(feed_posts.c.item_id, "item_ids"))
    .group_by(feed_posts.c.item_id)
)


_LOOKED_FOR = (
    feed_posts.c.kind == literal_column(f"'{PostKind.POST.value}'"),
    _IS_UNSETTLED,
    feed_posts.c.next_look_at.is_not(None),
)


def is_looked_for(item_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether runs still look for the post of an item: until they have, the item is not worked on."""
    return select(feed_posts.c.id).where(feed_posts.c.item_id == item_id, *_LOOKED_FOR).exists()


def items_looked_for(job_name: ColumnElement[str]) -> Select[tuple[int]]:
    """The items of a job whose posts runs still look for."""
    return select(feed_posts.c.item_id).where(feed_posts.c.job_name == job_name, *_LOOKED_FOR)


def next_look_of(item_id: ColumnElement[int]) -> ColumnElement[datetime]:
    """When runs look for the post of an item next, as a part of a statement."""
    found = select(feed_posts.c.next_look_at).where(feed_posts.c.item_id == item_id, *_LOOKED_FOR)
    return found.scalar_subquery()


def note_interrupted(connection: Connection, job_name: str, *, now: datetime) -> None:
    """Posts whose sender was cut off become UNSETTLED, and are looked for at once."""
    for row in OUTBOX.settle(connection, job_name, now=now):
        execute(connection, _LOOK_AT, {"post_id": row["id"], "look_at": now})


def leave(
    connection: Connection,
    post: Post,
    *,
    error: str,
    look_at: datetime | None,
    run_id: int,
    now: datetime,
) -> bool:
    """SENDING -> UNSETTLED: the answer to a post did not come. False if it is not this run's any more."""
    is_ours = OUTBOX.move(
        connection,
        post.id,
        before=OutboxState.SENDING,
        after=OutboxState.UNSETTLED,
        now=now,
        run_id=run_id,
        error=error,
    )
    if is_ours:
        execute(connection, _LOOK_AT, {"post_id": post.id, "look_at": look_at})
    return is_ours


def due(connection: Connection, job_name: str, *, now: datetime) -> list[Post]:
    """The posts of a job that are to be looked for now, oldest first."""
    return [
        post_from(row)
        for row in execute(connection, _DUE, {"job": job_name, "now": now}).mappings()
    ]


def note_look(
    connection: Connection, post: Post, *, looks: int, absences: int, look_at: datetime | None
) -> bool:
    """Record a look that did not find the post, and when the next one is. False if another run was faster."""
    values = {
        "post_id": post.id,
        "seen": post.next_look_at,
        "look_at": look_at,
        "look_count": looks,
        "absence_count": absences,
    }
    return execute(connection, _NOTE_LOOK, values).rowcount == 1


def next_looks(connection: Connection, item_ids: Collection[int]) -> dict[int, datetime | None]:
    """Those of these items that have an unsettled post, edit or reply, each with the time of the next look; None if
    a person is to look."""
    return dict(execute(connection, _OF_ITEMS, {"item_ids": sorted(item_ids)}).all())
