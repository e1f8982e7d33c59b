"""The pages of books: searches, books and emails."""

from pathlib import Path

from tsuzuki.model.access import Right
from tsuzuki.web.pages.extension import Pages
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.navigation import MenuEntry
from tsuzuki.web.pages.overview_card import OverviewCards

PAGES = Pages(
    folder=Path(__file__).parents[1],
    screens=(
        "tsuzuki.collectors.books.pages.books",
        "tsuzuki.collectors.books.pages.lists",
    ),
    icons={
        "books": '<path d="M8 4C6.500 3 4 2.700 2 3v9.500c2-.3 4.500 0 6 1 1.500-1 4-1.300 6-1'
        'V3c-2-.3-4.500 0-6 1zm0 0v9.500"/>',
    },
    menu=(MenuEntry(message("Books"), "/books", Right.COLLECTORS_READ, "books", "b"),),
    audit_words={
        "mail": message("Email"),
        "books.cursor.reset": message("Cursor reset"),
        "books.mail.reset": message("Email history reset"),
        "books.mail.decide": message("Email resolved"),
    },
    run_effects="tsuzuki.collectors.books.pages.run_effects:run_effects",
    overview=OverviewCards(
        right=Right.COLLECTORS_READ, make="tsuzuki.collectors.books.pages.overview:cards"
    ),
)
