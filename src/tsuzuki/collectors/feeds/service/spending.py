"""What was spent on models today, what may still be, and when there is more."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tsuzuki.collectors.feeds.model.budget import Budgets, BudgetUse
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.queries import models
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions
from tsuzuki.wiring.collector import ServiceContext

BUDGET_KEYS = ("budget", "budget_zone", "models.*.provider", "models.*.budget")
"""What this needs of the section. A key or a token in a variable is not needed."""

MICROS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SpendingView:
    """What one scope has spent. `parked_until` is set for a model that asked for a pause."""

    name: str
    use: BudgetUse
    parked_until: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        use, limits = self.use, self.use.limits
        return {
            "scope": self.name,
            "day": use.day,
            "requests": use.spent.requests,
            "requests_limit": limits.requests_per_day,
            "requests_this_minute": use.requests_this_minute,
            "requests_per_minute_limit": limits.requests_per_minute,
            "tokens": use.spent.tokens,
            "tokens_limit": limits.tokens_per_day,
            "cost": use.spent.cost_micros / MICROS,
            "cost_limit": limits.cost_per_day,
            "resets_at": use.resets_at,
            "parked_until": self.parked_until,
        }


class Spending:
    def __init__(self, context: ServiceContext, definitions: FeedDefinitions) -> None:
        self._context = context
        self._database = context.database
        self._definitions = definitions

    def use(self) -> list[SpendingView]:
        """By all feeds, by each model, and by each feed."""
        section = self._context.section(FeedsSection, only=BUDGET_KEYS)
        known = {
            view.stored.id: view
            for view in self._definitions.find()
            if view.stored is not None and view.options is not None
        }
        options = {feed_id: view.options for feed_id, view in known.items() if view.options}
        with self._database.read() as connection:
            now = self._database.now(connection)
            used = Budgets(section).use(connection, feeds=options, now=now)
            parked = models.parked(connection, now=now)
        views = []
        for use in used:
            kind, _, name = use.scope.partition(":")
            shown = (
                f"feed {known[int(name)].label}" if kind == "feed" else use.scope.replace(":", " ")
            )
            park = parked.get(name) if kind == "model" else None
            views.append(
                SpendingView(name=shown, use=use, parked_until=park.parked_until if park else None)
            )
        return views
