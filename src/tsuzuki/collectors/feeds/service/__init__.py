"""The use-cases of feeds, for every interface: the feeds themselves, their items, and what is spent."""

from dataclasses import dataclass

from tsuzuki.collectors.feeds.service.explain import Explanations
from tsuzuki.collectors.feeds.service.feed_definitions import FeedDefinitions
from tsuzuki.collectors.feeds.service.funnel import Funnels
from tsuzuki.collectors.feeds.service.items import Items
from tsuzuki.collectors.feeds.service.preview import Previews
from tsuzuki.collectors.feeds.service.spending import Spending
from tsuzuki.wiring.collector import ServiceContext


@dataclass(frozen=True, kw_only=True)
class FeedsService:
    definitions: FeedDefinitions
    items: Items
    explanations: Explanations
    previews: Previews
    spending: Spending
    funnels: Funnels

    @classmethod
    def of(cls, context: ServiceContext) -> "FeedsService":
        definitions = FeedDefinitions(context)
        items = Items(context, definitions)
        return cls(
            definitions=definitions,
            items=items,
            explanations=Explanations(context, definitions, items),
            previews=Previews(context, items),
            spending=Spending(context, definitions),
            funnels=Funnels(context, definitions),
        )
