"""Pages, menu entry, overview card and run section that the collector adds to the web page."""

from pathlib import Path

from tsuzuki.web.pages.extension import Pages
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.navigation import MenuEntry
from tsuzuki.web.pages.overview_card import OverviewCards
from tsuzuki_statuses.rights import STATUSES_READ

PAGES = Pages(
    folder=Path(__file__).parent,
    screens=("tsuzuki_statuses.screens",),
    icons={"statuses": '<path d="M2 3h12v8H7l-3 3v-3H2z"/>'},
    menu=(MenuEntry(message("Statuses"), "/statuses", STATUSES_READ, "statuses", "m"),),
    overview=OverviewCards(right=STATUSES_READ, make="tsuzuki_statuses.screens:cards"),
    audit_words={
        "statuses": message("Statuses of a job"),
        "statuses.reset": message("Cursor reset"),
        "statuses.forget": message("Statuses deleted"),
    },
    run_effects="tsuzuki_statuses.screens:run_effects",
)
