"""The limits of a budget, the time windows they are counted in, and which of them refuses a request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tsuzuki.collectors.feeds.options import Budget
from tsuzuki.collectors.feeds.queries.budgets import Spent
from tsuzuki.collectors.kit.zone_day import day_of

ALL = "all"
DAY_PREFIX = "day:"
MINUTE_PREFIX = "minute:"
MICROS = 1_000_000
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class BudgetWindow:
    """A day or a minute that use is counted in."""

    name: str
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The day and the minute of a moment."""

    day: BudgetWindow
    minute: BudgetWindow

    @classmethod
    def of(cls, now: datetime, zone: ZoneInfo) -> "Windows":
        day = day_of(now, zone)
        start = now.astimezone(UTC).replace(second=0, microsecond=0)
        return cls(
            day=BudgetWindow(name=f"{DAY_PREFIX}{day.name}", ends_at=day.ends_at),
            minute=BudgetWindow(
                name=f"{MINUTE_PREFIX}{start:%Y-%m-%dT%H:%M}", ends_at=start + _MINUTE
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a request is not sent. `open_at` is None if no other day leaves room for it either."""

    scope: str
    limit: str
    """The key of the budget: `requests_per_day`."""

    used: int
    allowed: int
    open_at: datetime | None

    @property
    def is_for_its_size(self) -> bool:
        """Whether a smaller request would have room some day: a limit of 0 leaves none for any."""
        return self.open_at is None and self.allowed > 0

    @property
    def sentence(self) -> str:
        kind, _, name = self.scope.partition(":")
        of = {"all": "all feeds", "model": f"the model {name}", "feed": "the feed"}[kind]
        amounts = f"{self.used} of {self.allowed} used"
        if self.limit == "cost_per_day":
            amounts = f"${self.used / MICROS:.4f} of ${self.allowed / MICROS:.4f} used"
        return f"not enough budget of {of} for the request: `{self.limit}`, {amounts}"


@dataclass(frozen=True, kw_only=True)
class _Limit:
    key: str
    window: BudgetWindow
    column: str
    allowed: int


@dataclass(frozen=True, kw_only=True)
class BudgetScope:
    """What a budget is for: all feeds, a model or a feed."""

    name: str
    budget: Budget

    def counted_in(self, windows: Windows) -> list[tuple[BudgetWindow, dict[str, int]]]:
        """The windows that use is counted in, with the limits of each by column. A day is always counted: it is
        shown; a minute is if it is limited."""
        by_window: dict[BudgetWindow, dict[str, int]] = {windows.day: {}}
        for limit in self.limits(windows):
            by_window.setdefault(limit.window, {})[limit.column] = limit.allowed
        return list(by_window.items())

    def limits(self, windows: Windows) -> list[_Limit]:
        budget, day, minute = self.budget, windows.day, windows.minute
        cost = None if budget.cost_per_day is None else round(budget.cost_per_day * MICROS)
        possible = (
            ("requests_per_day", day, "requests", budget.requests_per_day),
            ("tokens_per_day", day, "tokens", budget.tokens_per_day),
            ("cost_per_day", day, "cost_micros", cost),
            ("requests_per_minute", minute, "requests", budget.requests_per_minute),
        )
        return [
            _Limit(key=key, window=window, column=column, allowed=allowed)
            for key, window, column, allowed in possible
            if allowed is not None
        ]


def refusal_of(
    scopes: Iterable[BudgetScope],
    asked: Spent,
    spent: Mapping[tuple[str, str], Spent],
    windows: Windows,
) -> Refusal | None:
    """Of the limits that leave no room for a request the one that does so for longest."""
    found = []
    for scope in scopes:
        for limit in scope.limits(windows):
            used = getattr(spent.get((scope.name, limit.window.name), Spent()), limit.column)
            needed = getattr(asked, limit.column)
            if used + needed > limit.allowed:
                refusal = Refusal(
                    scope=scope.name,
                    limit=limit.key,
                    used=used,
                    allowed=limit.allowed,
                    open_at=None if needed > limit.allowed else limit.window.ends_at,
                )
                found.append(refusal)
    return max(found, key=_duration, default=None)


def _duration(refusal: Refusal) -> tuple[bool, bool, datetime]:
    """A limit that no request meets lasts longer than one that this request does not."""
    open_at = refusal.open_at or datetime.min.replace(tzinfo=UTC)
    return refusal.open_at is None, refusal.allowed == 0, open_at
