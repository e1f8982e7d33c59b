"""The funnel of feeds: how many items were fetched, screened, summarised and posted, and why others were not."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tsuzuki.collectors.feeds.items.item import ItemReason
from tsuzuki.collectors.feeds.queries import item_funnel
from tsuzuki.collectors.feeds.queries.item_funnel import ItemGroup
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions
from tsuzuki.collectors.feeds.tables import WaitingState
from tsuzuki.wiring.collector import ServiceContext

COUNTED_MAX = 5_000
"""Older items are not counted."""


@dataclass(frozen=True, kw_only=True)
class Funnel:
    """Of the newest items, at most `counted_max`. `reasons` has how many were put off or given up for each reason,
    `waiting` how many wait in each state; by their names in lower case, without those that are 0."""

    fetched: int = 0
    screened: int = 0
    summarised: int = 0
    posted: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    counted_max: int = COUNTED_MAX


class Funnels:
    def __init__(self, context: ServiceContext, definitions: FeedDefinitions) -> None:
        self._database = context.database
        self._definitions = definitions

    def count(self, *, job: str | None = None, feed: str | None = None) -> Funnel:
        """Of all feeds, those of one job, or one feed. Raises `NotFound`."""
        feeds = [self._definitions.get(feed)] if feed else self._definitions.find(job)
        ids = [view.stored.id for view in feeds if view.stored is not None]
        if not ids:
            return Funnel()
        with self._database.read() as connection:
            groups = item_funnel.groups(connection, ids, at_most=COUNTED_MAX)
        return _funnel(groups)


def _funnel(groups: list[ItemGroup]) -> Funnel:
    reasons: Counter[ItemReason] = Counter()
    waiting: Counter[WaitingState] = Counter()
    for group in groups:
        if group.reason:
            reasons[group.reason] += group.number
        if group.waiting is not None:
            waiting[group.waiting] += group.number
    return Funnel(
        fetched=sum(group.number for group in groups),
        screened=sum(group.number for group in groups if group.is_screened),
        summarised=sum(group.number for group in groups if group.is_summarised),
        posted=sum(group.number for group in groups if group.reason is ItemReason.NONE),
        reasons={reason.name.lower(): reasons[reason] for reason in sorted(reasons)},
        waiting={state.value: waiting[state] for state in WaitingState if waiting[state]},
    )
