"""Posts that arrived, to be compared with what the accounts have."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Integer, Text, bindparam, select

from tsuzuki.collectors.feeds.tables import PostKind, feed_posts, items
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list


class SentPost(NamedTuple):
    """A post that is recorded as sent, with the link of its article."""

    id: int
    remote_id: str | None
    key: str
    created_at: datetime
    url: str

    @property
    def has_remote_id(self) -> bool:
        return self.remote_id not in (None, self.key)


class PostedArticle(NamedTuple):
    """An article and the post of it, if one is recorded."""

    url: str
    account: str | None
    state: OutboxState | None
    remote_id: str | None
    key: str | None

    @property
    def has_remote_id(self) -> bool:
        """Whether the receiver's id is recorded. A person who settles a post knows its key only."""
        return self.remote_id not in (None, self.key)


_ACCOUNT = bindparam("account", type_=Text())
_SENT_SINCE = (
    feed_posts.c.state == OutboxState.SENT.value,
    feed_posts.c.created_at >= bindparam("since", type_=UtcTime()),
)
_ACCOUNTS = select(feed_posts.c.account).where(*_SENT_SINCE).distinct()
_SENT = (
    select(
        feed_posts.c.id,
        feed_posts.c.remote_id,
        feed_posts.c.idempotency_key,
        feed_posts.c.created_at,
        items.c.url,
    )
    .join(items, items.c.id == feed_posts.c.item_id)
    .where(*_SENT_SINCE, feed_posts.c.account == _ACCOUNT)
    .order_by(feed_posts.c.id.desc())
    .limit(bindparam("limit", type_=Integer()))
)
_ARTICLES = (
    select(
        items.c.url,
        feed_posts.c.account,
        feed_posts.c.state,
        feed_posts.c.remote_id,
        feed_posts.c.idempotency_key,
    )
    .outerjoin(
        feed_posts,
        (feed_posts.c.item_id == items.c.id) & (feed_posts.c.kind == PostKind.POST.value),
    )
    .where(in_list(items.c.url, "urls"))
)


def accounts(connection: Connection, *, since: datetime) -> list[str]:
    """The accounts with posts since then, by name."""
    return sorted(execute(connection, _ACCOUNTS, {"since": since}).scalars())


def find(connection: Connection, account: str, *, since: datetime, limit: int) -> list[SentPost]:
    """The posts of an account since then, newest first."""
    values = {"account": account, "since": since, "limit": limit}
    return [SentPost(*row) for row in execute(connection, _SENT, values).all()]


def articles(connection: Connection, urls: Collection[str]) -> list[PostedArticle]:
    """Those of these links that are articles of a feed."""
    rows = execute(connection, _ARTICLES, {"urls": urls}).all()
    return [
        PostedArticle(url, account, OutboxState(state) if state else None, remote_id, key)
        for url, account, state, remote_id, key in rows
    ]
