"""Budgets: what may be spent on models, by all feeds, by each model and by each feed.

What a request may spend is counted before it is sent, in a transaction that is committed by then, in all scopes or in
none. So after any crash no more was sent than the limits allow; at worst something was counted that never was sent.
Tokens and cost are estimates until the answer is there, and `settle` corrects them.

A day is one of the section's zone. A minute is one of the clock, so that around its turn twice its limit may be sent.
The row of all feeds is always changed first: two transactions wait for each other there, and never in a circle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tsuzuki.collectors.feeds.model.budget_limits import (
    ALL,
    DAY_PREFIX,
    MINUTE_PREFIX,
    BudgetScope,
    Refusal,
    Windows,
    refusal_of,
)
from tsuzuki.collectors.feeds.model.protocol import ModelMisconfigured, Usage
from tsuzuki.collectors.feeds.options import (
    Budget,
    FeedOptions,
    FeedsSection,
    ModelSettings,
    Provider,
)
from tsuzuki.collectors.feeds.queries import budgets
from tsuzuki.collectors.feeds.queries.budgets import Spent
from tsuzuki.store.sql.database import Connection
from tsuzuki.store.sql.prepared import AnyConnection

__all__ = ["BudgetUse", "Budgets", "Refusal", "Reservation"]

KEPT = timedelta(days=31)
MINUTES_KEPT = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What was counted for one request, and where. It is settled, or released if the request was not sent."""

    counted_in: tuple[tuple[str, str], ...]
    """Scopes with the names of their windows."""

    tokens: int
    cost_micros: int


@dataclass(frozen=True, kw_only=True)
class BudgetUse:
    """What a scope has spent in this day and this minute, and its limits."""

    scope: str
    day: str
    resets_at: datetime
    spent: Spent
    requests_this_minute: int | None
    """Counted only where a minute is limited."""

    limits: Budget


class Budgets:
    """The budgets of an installation."""

    def __init__(self, section: FeedsSection) -> None:
        self._section = section
        self._zone = ZoneInfo(section.budget_zone)

    def reserve(
        self,
        connection: Connection,
        *,
        feed_id: int,
        feed: FeedOptions,
        model_name: str,
        model: ModelSettings,
        tokens: int,
        cost: int | None,
        now: datetime,
    ) -> Reservation | Refusal:
        """Count one request. It may be sent when this transaction is committed. Raises `ModelMisconfigured` if
        the cost is limited and not known."""
        if model.provider is Provider.EXTRACTIVE:
            return Reservation(counted_in=(), tokens=0, cost_micros=0)
        scopes = self._scopes(feed_id, feed, model_name, model)
        _require_price(scopes, model_name, cost)
        windows = Windows.of(now, self._zone)
        asked = Spent(requests=1, tokens=tokens, cost_micros=cost or 0)
        never = refusal_of(scopes, asked, {}, windows)
        if never is not None:
            return never
        counted: list[tuple[str, str]] = []
        for scope in scopes:
            for window, limits in scope.counted_in(windows):
                if not budgets.add(connection, scope.name, window.name, asked, limits=limits):
                    # These rows are locked by this transaction: no other has seen the counts.
                    _change(connection, counted, -asked)
                    return self._refusal(connection, scopes, asked, windows)
                counted.append((scope.name, window.name))
        return Reservation(
            counted_in=tuple(counted), tokens=asked.tokens, cost_micros=asked.cost_micros
        )

    def settle(self, connection: Connection, reservation: Reservation, usage: Usage) -> None:
        """Replace the estimate by what was used. The request stays counted."""
        cost = reservation.cost_micros if usage.cost_micros is None else usage.cost_micros
        by = Spent(
            tokens=usage.tokens - reservation.tokens, cost_micros=cost - reservation.cost_micros
        )
        if by != Spent():
            _change(connection, reservation.counted_in, by)

    def release(self, connection: Connection, reservation: Reservation) -> None:
        """Count a request no longer that was certainly not sent."""
        asked = Spent(requests=1, tokens=reservation.tokens, cost_micros=reservation.cost_micros)
        _change(connection, reservation.counted_in, -asked)

    def refusals(
        self, connection: AnyConnection, *, feeds: Mapping[int, FeedOptions], now: datetime
    ) -> dict[int, Refusal]:
        """The feeds whose next request would be refused however small it is, by id, and until when."""
        windows = Windows.of(now, self._zone)
        spent = self._spent(connection, windows)
        least = Spent(requests=1, tokens=1)
        found = {}
        for feed_id, feed in feeds.items():
            model = self._section.models.get(feed.model)
            if model is not None and model.provider is not Provider.EXTRACTIVE:
                scopes = self._scopes(feed_id, feed, feed.model, model)
                found[feed_id] = refusal_of(scopes, least, spent, windows)
        return {feed_id: refusal for feed_id, refusal in found.items() if refusal is not None}

    def use(
        self, connection: AnyConnection, *, feeds: Mapping[int, FeedOptions], now: datetime
    ) -> list[BudgetUse]:
        """What was spent in this day and minute: by all feeds, by each model, and by each of these feeds."""
        windows = Windows.of(now, self._zone)
        spent = self._spent(connection, windows)
        limits = {ALL: self._section.budget}
        limits |= {_of_model(name): model.budget for name, model in self._section.models.items()}
        limits |= {_of_feed(feed_id): feed.budget for feed_id, feed in feeds.items()}
        return [
            BudgetUse(
                scope=scope,
                day=windows.day.name.removeprefix(DAY_PREFIX),
                resets_at=windows.day.ends_at,
                spent=spent.get((scope, windows.day.name), Spent()),
                requests_this_minute=None
                if budget.requests_per_minute is None
                else spent.get((scope, windows.minute.name), Spent()).requests,
                limits=budget,
            )
            for scope, budget in limits.items()
        ]

    def prune(self, connection: Connection, *, now: datetime) -> int:
        """Delete what no budget is counted by any more."""
        day = Windows.of(now - KEPT, self._zone).day.name
        minute = Windows.of(now - MINUTES_KEPT, self._zone).minute.name
        return budgets.prune(connection, DAY_PREFIX, oldest_kept=day) + budgets.prune(
            connection, MINUTE_PREFIX, oldest_kept=minute
        )

    def _scopes(
        self, feed_id: int, feed: FeedOptions, model_name: str, model: ModelSettings
    ) -> list[BudgetScope]:
        return [
            BudgetScope(name=ALL, budget=self._section.budget),
            BudgetScope(name=_of_model(model_name), budget=model.budget),
            BudgetScope(name=_of_feed(feed_id), budget=feed.budget),
        ]

    def _spent(self, connection: AnyConnection, windows: Windows) -> dict[tuple[str, str], Spent]:
        return budgets.spent_by_scope(connection, day=windows.day.name, minute=windows.minute.name)

    def _refusal(
        self, connection: Connection, scopes: list[BudgetScope], asked: Spent, windows: Windows
    ) -> Refusal:
        """Why a guard refused. It locked the row that it refused, so that the row still says the same."""
        refusal = refusal_of(scopes, asked, self._spent(connection, windows), windows)
        if refusal is None:
            raise RuntimeError("a request was refused that its budgets allow")
        return refusal


def _of_model(name: str) -> str:
    return f"model:{name}"


def _of_feed(feed_id: int) -> str:
    return f"feed:{feed_id}"


def _change(connection: Connection, counted_in: Iterable[tuple[str, str]], by: Spent) -> None:
    for scope, window in counted_in:
        budgets.change(connection, scope, window, by)


def _require_price(scopes: list[BudgetScope], model_name: str, cost: int | None) -> None:
    if cost is None and any(scope.budget.cost_per_day is not None for scope in scopes):
        raise ModelMisconfigured(
            f"`cost_per_day` is set, but the price of the model {model_name} is unknown",
            hint="Set `dollars_per_million_input_tokens` and `dollars_per_million_output_tokens` of "
            f"`feeds.models.{model_name}`, or remove `cost_per_day`.",
        )
