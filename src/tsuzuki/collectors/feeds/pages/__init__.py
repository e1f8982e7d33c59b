"""The pages of feeds: their health, their items, and what waits for approval."""

from pathlib import Path

from tsuzuki.model.access import Right
from tsuzuki.web.pages.extension import Pages
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.navigation import MenuEntry
from tsuzuki.web.pages.overview_card import OverviewCards

PAGES = Pages(
    folder=Path(__file__).parents[1],
    screens=(
        "tsuzuki.collectors.feeds.pages.add",
        "tsuzuki.collectors.feeds.pages.feeds",
        "tsuzuki.collectors.feeds.pages.items",
        "tsuzuki.collectors.feeds.pages.work",
    ),
    icons={
        "feeds": '<path d="M3 8.500A4.500 4.500 0 0 1 7.500 13M3 4a9 9 0 0 1 9 9M3.500 12.500h.1"/>',
    },
    menu=(MenuEntry(message("Feeds"), "/feeds", Right.COLLECTORS_READ, "feeds", "n"),),
    audit_words={
        "feed item": message("Feed item"),
        "feeds.item.approve": message("Post approved"),
        "feeds.item.requeue": message("Item requeued"),
        "feeds.post.decide": message("Post resolved"),
    },
    run_effects="tsuzuki.collectors.feeds.pages.run_effects:run_effects",
    overview=OverviewCards(
        right=Right.COLLECTORS_READ, make="tsuzuki.collectors.feeds.pages.overview:cards"
    ),
    numbered="tsuzuki.collectors.feeds.pages.items:numbered",
)
