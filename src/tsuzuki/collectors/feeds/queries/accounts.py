"""Accounts: statements over `feed_accounts`, what an account's server allows and until when it allows nothing."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.tables import feed_accounts
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for
from tsuzuki.store.sql.types import KeyText, UtcTime

_ACCOUNT = bindparam("name", type_=KeyText())
_SELECT = select(
    feed_accounts.c.limits, feed_accounts.c.limits_read_at, feed_accounts.c.limited_until
).where(feed_accounts.c.account == _ACCOUNT)

_LIMITED = select(feed_accounts.c.account, feed_accounts.c.limited_until).where(
    feed_accounts.c.limited_until > bindparam("now", type_=UtcTime())
)


@dataclass(frozen=True, kw_only=True)
class StoredAccount:
    """What is known of an account."""

    limits: dict[str, Any] | None = None
    limits_read_at: datetime | None = None
    limited_until: datetime | None = None


def get(connection: Connection, account: str) -> StoredAccount:
    row = execute(connection, _SELECT, {"name": account}).mapping_or_none()
    return StoredAccount() if row is None else StoredAccount(**row)


def limited(connection: Connection, *, now: datetime) -> dict[str, datetime]:
    """The accounts to which nothing is posted now, and until when."""
    return dict(execute(connection, _LIMITED, {"now": now}).all())


def set_limits(
    connection: Connection, account: str, limits: dict[str, Any], *, now: datetime
) -> None:
    """Remember what the account's server allows."""
    values = {"name": account, "limits": limits, "limits_read_at": now}
    execute(connection, _set_limits(connection.dialect), values)


def limit_until(connection: Connection, account: str, until: datetime) -> None:
    """Post nothing to the account until then; a later time that is stored stays."""
    values = {"name": account, "limited_until": until}
    execute(connection, _limit_until(connection.dialect), values)


@lru_cache
def _set_limits(dialect: Dialect) -> Any:
    statement = insert_into(dialect, feed_accounts).values(
        account=_ACCOUNT, **parameters_for(feed_accounts, "limits", "limits_read_at")
    )
    return statement.on_conflict_do_update(
        index_elements=[feed_accounts.c.account],
        set_={name: statement.excluded[name] for name in ("limits", "limits_read_at")},
    )


@lru_cache
def _limit_until(dialect: Dialect) -> Any:
    statement = insert_into(dialect, feed_accounts).values(
        account=_ACCOUNT, **parameters_for(feed_accounts, "limited_until")
    )
    until = feed_accounts.c.limited_until
    return statement.on_conflict_do_update(
        index_elements=[feed_accounts.c.account],
        set_={"limited_until": statement.excluded.limited_until},
        where=until.is_(None) | (until < statement.excluded.limited_until),
    )
