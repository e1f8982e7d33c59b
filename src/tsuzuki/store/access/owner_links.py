"""Links by which the owner of a server without users signs in. An opened link is the session of a browser.

`expires_at` is the end of the link until it is opened, then the end of the session. With the first user no link and no
session of these counts any more.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Float,
    bindparam,
    delete,
    exists,
    insert,
    select,
    update,
)

from tsuzuki.store.schema.access_tables import owner_links, users
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.value_list import in_list

_LIFETIME = bindparam("lifetime_seconds", type_=Float())
_IS_IN_TIME = owner_links.c.expires_at > db_now()
_NO_USER = ~exists().where(users.c.id.is_not(None))
_ADD = (
    insert(owner_links)
    .values(
        **parameters_for(owner_links, "link_hash", "created_by"),
        created_at=db_now(),
        expires_at=db_now(_LIFETIME),
    )
    .returning(owner_links.c.id, owner_links.c.expires_at)
)
_OPEN = (
    update(owner_links)
    .where(
        owner_links.c.link_hash == bindparam("link", type_=owner_links.c.link_hash.type),
        owner_links.c.opened_at.is_(None),
        _IS_IN_TIME,
        _NO_USER,
    )
    .values(
        **parameters_for(owner_links, "session_hash"),
        opened_at=db_now(),
        expires_at=db_now(_LIFETIME),
    )
    .returning(owner_links.c.id)
)
_LIVE = (owner_links.c.opened_at.is_not(None), _IS_IN_TIME, _NO_USER)
_WITH_SESSION = select(owner_links.c.id).where(
    owner_links.c.session_hash == bindparam("session", type_=owner_links.c.session_hash.type),
    *_LIVE,
)
_LIVE_OF = select(owner_links.c.id).where(in_list(owner_links.c.id, "ids"), *_LIVE)
_END = delete(owner_links).where(owner_links.c.id == bindparam("me", type_=BigInteger()))
_DELETE_EXPIRED = delete(owner_links).where(~_IS_IN_TIME)


def add(
    connection: Connection, *, link_hash: str, lifetime_seconds: float, actor: str
) -> tuple[int, datetime]:
    """Store a link; answers its id and when it expires."""
    values: dict[str, Any] = {
        "link_hash": link_hash,
        "lifetime_seconds": lifetime_seconds,
        "created_by": actor,
    }
    link_id, expires_at = execute(connection, _ADD, values).one()
    return link_id, expires_at


def open_link(
    connection: Connection, link_hash: str, *, session_hash: str, lifetime_seconds: float
) -> int | None:
    """Use a link up for a session, which has its id. None if it was opened before or has expired, or there is a
    user."""
    values = {
        "link": link_hash,
        "session_hash": session_hash,
        "lifetime_seconds": lifetime_seconds,
    }
    opened: int | None = execute(connection, _OPEN, values).scalar_one_or_none()
    return opened


def with_session(connection: AnyConnection, session_hash: str) -> int | None:
    """The id of the live session with this hash."""
    found: int | None = execute(
        connection, _WITH_SESSION, {"session": session_hash}
    ).scalar_one_or_none()
    return found


def live(connection: Connection, ids: Collection[int]) -> frozenset[int]:
    """Those whose session still authenticates."""
    return frozenset(execute(connection, _LIVE_OF, {"ids": sorted(ids)}).scalars())


def end(connection: Connection, link_id: int) -> bool:
    """End the session of a link. False if it has ended before."""
    return execute(connection, _END, {"me": link_id}).rowcount == 1


def delete_expired(connection: Connection) -> None:
    execute(connection, _DELETE_EXPIRED)
