"""Every page in every language, theme and width, and without JavaScript."""

import itertools

import pytest
from playwright.sync_api import Browser

from support.page_checks import check_page, stray_english, visitor
from support.web_client import Served
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

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


@pytest.mark.parametrize("path", pages())
def test_a_page_holds_in_every_layout(chromium: Browser, site: Served, path: str) -> None:
    for language, theme, width in itertools.product(("en", "ja"), ("light", "dark"), WIDTHS):
        with visitor(
            chromium, site.client.url, width=width, language=language, theme=theme
        ) as person:
            page = person.open(path)
            check_page(page)
            if language == "ja":
                assert (found := stray_english(page)) == [], found
    for language, width in itertools.product(("en", "ja"), WIDTHS):
        with visitor(
            chromium, site.client.url, width=width, language=language, javascript=False
        ) as person:
            assert person.open(path).locator("h1").first.is_visible()
