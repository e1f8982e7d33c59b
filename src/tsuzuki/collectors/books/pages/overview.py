"""The card of books on the overview: a day's quota that is used up, so that searches wait for the next day."""

from collections.abc import Sequence

from tsuzuki.collectors.books.api import books_service
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.formats import number_text
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.overview_card import Card


def cards(context: PageContext) -> Sequence[Card]:
    books = books_service(context)
    waiting = [search for search in books.searches() if search.is_enabled]
    if not waiting or books.quota().left:
        return []
    language = context.viewer.language
    name = translations(language).gettext(message("Searches waiting for quota"))
    return [Card(name=name, number=number_text(len(waiting), language), path="/books")]
