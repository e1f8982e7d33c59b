"""The pages of the code index: trees, search, and what a tree defines."""

from pathlib import Path

from tsuzuki.collectors.codeindex.rights import CODE_READ
from tsuzuki.web.pages.extension import Pages
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.navigation import MenuEntry

PAGES = Pages(
    folder=Path(__file__).parents[1],
    screens=(
        "tsuzuki.collectors.codeindex.pages.index",
        "tsuzuki.collectors.codeindex.pages.search",
    ),
    icons={
        "code": '<path d="M5 4.500 1.500 8 5 11.500m6-7L14.500 8 11 11.500M9 3 7 13"/>',
    },
    menu=(MenuEntry(message("Code index"), "/index", CODE_READ, "code", "i"),),
    audit_words={
        "tree": message("Tree"),
        "codeindex.build": message("Index built"),
        "codeindex.remove": message("Index removed"),
    },
)
