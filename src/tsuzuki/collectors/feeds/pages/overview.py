"""The card of feeds on the overview: posts that a person must approve."""

from collections.abc import Sequence
from urllib.parse import urlencode

from tsuzuki.collectors.feeds.api.feeds import feeds_service
from tsuzuki.model.access import Right
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.formats import number_text
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.overview_card import Card

COUNTED_MAX = 1_000
REVIEWED_MAX = 10
"""So few are shown and approved on one page; more are selected in the list."""
FILTERS = urlencode({"waiting": "approval"})


def cards(context: PageContext) -> Sequence[Card]:
    items = feeds_service(context).items
    held = items.count(at_most=COUNTED_MAX, waiting="approval")
    if not held:
        return []
    path = f"/feeds/items?{FILTERS}"
    if held <= REVIEWED_MAX and context.principal.may(Right.COLLECTORS_OPERATE):
        ids = [view.item.id for view in items.find(waiting="approval", limit=REVIEWED_MAX)]
        path = f"/feeds/items/approve?{urlencode({'id': ids, 'back': FILTERS}, doseq=True)}"
    language = context.viewer.language
    name = translations(language).gettext(message("Posts awaiting approval"))
    number = number_text(held, language) + ("+" if held == COUNTED_MAX else "")
    return [Card(name=name, number=number, path=path)]
