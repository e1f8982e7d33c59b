"""Every page in every language, theme and width, and without JavaScript."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser

from support.page_checks import HEIGHT, Visitor, check_page, stray_english, visitor
from support.web_client import Served
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

LANGUAGES = ("en", "ja")
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
WIDTHS = (1280, 768, 320)
OF_ONE = ["/runs/3", "/runs/7", "/runs/7/cancel", "/runs/3/retry", "/runs/4/compare?with=1"]


def pages() -> list[str]:
    """Each page that has an address of its own; those of one object by examples."""
    found = {
        route.path
        for router in screens.routers()
        for route in router.routes
        if isinstance(route, PageRoute) and route.methods == {"GET"} and route.right
    }
    needs_choice = {"/runs/selected", "/commits/targets/remove"}
    return sorted(path for path in found - needs_choice if "{" not in path) + OF_ONE


@pytest.fixture(scope="module")
def people(chromium: Browser, site: Served) -> Iterator[dict[tuple[str, bool], Visitor]]:
    """By language, and whether with JavaScript."""
    with ExitStack() as stack:
        yield {
            (language, javascript): stack.enter_context(
                visitor(chromium, site.client.url, language=language, javascript=javascript)
            )
            for language, javascript in itertools.product(LANGUAGES, (True, False))
        }


@pytest.mark.parametrize("path", pages())
def test_a_page_holds_in_every_layout(people: dict[tuple[str, bool], Visitor], path: str) -> None:
    for (language, javascript), person in people.items():
        page = person.visit(path)
        if language == "ja":
            assert (found := stray_english(page)) == [], found
        for width, theme in itertools.product(WIDTHS, THEMES):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.emulate_media(color_scheme=theme)
            check_page(page, with_axe=javascript)
        assert person.faults == []
