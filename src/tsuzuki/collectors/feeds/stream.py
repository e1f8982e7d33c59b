"""The stream topic `items`: what happens to the items of feeds."""

from collections import Counter
from typing import Any

from tsuzuki.collectors.feeds.service import FeedsService
from tsuzuki.model.access import Right
from tsuzuki.web.answers import to_utc_text
from tsuzuki.web.stream.state_topic import State, StateTopic
from tsuzuki.wiring.application import Application

ITEMS_OF_EACH_STATUS = 50


def _items(application: Application) -> dict[str, dict[str, Any]]:
    feeds: FeedsService = application.service("feeds")
    return {
        str(item.id): {
            **item._asdict(),
            "status": item.status.name.lower(),
            "reason": None if item.reason is None else item.reason.name.lower(),
            "last_checked_at": to_utc_text(item.last_checked_at),
        }
        for item in feeds.items.last_checked(of_each_status=ITEMS_OF_EACH_STATUS)
    }


def _is_overrun(before: State, after: State) -> bool:
    """Whether everything shown of a status is new: then there may be more."""
    fresh = Counter(item["status"] for name, item in after.items() if before.get(name) != item)
    return any(count >= ITEMS_OF_EACH_STATUS for count in fresh.values())


TOPICS = (
    StateTopic(name="items", right=Right.COLLECTORS_READ, read=_items, is_overrun=_is_overrun),
)
