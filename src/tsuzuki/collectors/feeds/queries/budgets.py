"""The statements over what was spent: one row for each scope and time window."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, delete, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.tables import feed_budget_use
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.types import KeyText

UNLIMITED = 2**62

_USE = feed_budget_use.c
_KEY = (_USE.scope == bindparam("that_scope", type_=KeyText())) & (
    _USE.time_window == bindparam("that_window", type_=Text())
)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What was spent, or may be."""

    requests: int = 0
    tokens: int = 0
    cost_micros: int = 0

    def __neg__(self) -> "Spent":
        return Spent(requests=-self.requests, tokens=-self.tokens, cost_micros=-self.cost_micros)


def _changed(name: str) -> Any:
    return _USE[name] + bindparam(f"more_{name}", type_=BigInteger())


_CHANGE = (
    update(feed_budget_use)
    .where(_KEY)
    .values({name: _changed(name) for name in ("requests", "tokens", "cost_micros")})
)
_SELECT_WINDOWS = select(
    _USE.scope, _USE.time_window, _USE.requests, _USE.tokens, _USE.cost_micros
).where(
    (_USE.time_window == bindparam("day", type_=Text()))
    | (_USE.time_window == bindparam("minute", type_=Text()))
)
_DELETE_OLDER = delete(feed_budget_use).where(
    _USE.time_window.like(bindparam("of_length", type_=Text()))
    & (_USE.time_window < bindparam("oldest_kept", type_=Text()))
)


def add(
    connection: Connection, scope: str, window: str, spent: Spent, *, limits: Mapping[str, int]
) -> bool:
    """Count what a request may spend, if that is within the limits, by column. It must be within them by itself: a
    first row has nothing to be compared with."""
    values = {
        "scope": scope,
        "time_window": window,
        "requests": spent.requests,
        "tokens": spent.tokens,
        "cost_micros": spent.cost_micros,
        "requests_max": limits.get("requests", UNLIMITED),
        "tokens_max": limits.get("tokens", UNLIMITED),
        "cost_micros_max": limits.get("cost_micros", UNLIMITED),
    }
    return execute(connection, _add(connection.dialect), values).rowcount == 1


@lru_cache
def _add(dialect: Dialect) -> Any:
    names = ("requests", "tokens", "cost_micros")
    insert = insert_into(dialect, feed_budget_use).values(
        **parameters_for(feed_budget_use, "scope", "time_window", *names)
    )
    sums = {name: _USE[name] + insert.excluded[name] for name in names}
    within = [sums[name] <= bindparam(f"{name}_max", type_=BigInteger()) for name in names]
    return insert.on_conflict_do_update(
        index_elements=[_USE.scope, _USE.time_window],
        set_=sums,
        where=within[0] & within[1] & within[2],
    )


def change(connection: Connection, scope: str, window: str, by: Spent) -> None:
    """Correct what was counted; `by` may be negative."""
    values = {
        "that_scope": scope,
        "that_window": window,
        "more_requests": by.requests,
        "more_tokens": by.tokens,
        "more_cost_micros": by.cost_micros,
    }
    execute(connection, _CHANGE, values)


def spent_by_scope(
    connection: AnyConnection, *, day: str, minute: str
) -> dict[tuple[str, str], Spent]:
    """What every scope spent in a day and in a minute, by scope and window."""
    rows = execute(connection, _SELECT_WINDOWS, {"day": day, "minute": minute}).all()
    return {(row[0], row[1]): _spent(row[2:]) for row in rows}


def _spent(row: Iterable[int]) -> Spent:
    requests, tokens, cost_micros = row
    return Spent(requests=requests, tokens=tokens, cost_micros=cost_micros)


def prune(connection: Connection, prefix: str, *, oldest_kept: str) -> int:
    """Delete the windows of one length that are older than one of them."""
    values = {"of_length": f"{prefix}%", "oldest_kept": oldest_kept}
    return execute(connection, _DELETE_OLDER, values).rowcount
