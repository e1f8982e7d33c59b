"""Every page in every language, theme and width, and without JavaScript."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser

from support.code_site import code_site
from support.collect_site import collect_site
from support.feeds_site import HELD, feeds_site
from support.page_checks import HEIGHT, Visitor, check_page, stray_english, visitor
from support.page_site import page_site
from support.web_client import Served
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

LANGUAGES = ("en", "ja")
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
WIDTHS = (1280, 768, 320)
Site = Callable[[Path], AbstractContextManager[Served]]
SITES: dict[str, Site] = {
    "/books": collect_site,
    "/commits": collect_site,
    "/feeds": feeds_site,
    "/index": code_site,
}
"""Where the pages of a collector have something to show; others do in the workspace of runs."""
NEEDS_CHOICE = {
    "/commits/targets/remove",
    "/feeds/items/approve",
    "/feeds/requeue",
    "/index/read",
    "/index/references",
    "/runs/compare",
    "/runs/selected",
    "/views/delete",
    "/views/new",
}
EXAMPLES = [
    "/runs/3",
    "/runs/7",
    "/runs/7/cancel",
    "/runs/3/retry",
    "/runs/4/compare?with=1",
    "/runs/compare?id=4&id=1",
    "/views/new?address=/runs",
    f"/feeds/items/approve?id={HELD}",
    "/feeds/requeue?reason=api_failed",
    f"/feeds/items/{HELD}",
    "/books/jobs/novelties",
    "/index/read?name=shop/sums.py:total",
    "/index/references?name=total",
]
"""Of pages that show one object, or need a parameter."""

People = dict[tuple[str, bool], Visitor]


def pages() -> list[tuple[Site, str]]:
    """Each page that has an address of its own, and examples; with the workspace to show it in."""
    found = {
        route.path
        for screen in screens.screens()
        for route in screen.routes
        if isinstance(route, PageRoute) and route.methods == {"GET"} and route.right
    }
    paths = sorted(path for path in found - NEEDS_CHOICE if "{" not in path) + EXAMPLES
    return [
        (SITES.get("/" + path.split("/")[1].partition("?")[0], page_site), path) for path in paths
    ]


@pytest.fixture(scope="module")
def people(
    request: pytest.FixtureRequest, chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[People]:
    """By language, and whether with JavaScript."""
    with ExitStack() as stack:
        served = stack.enter_context(request.param(tmp_path_factory.mktemp("workspace")))
        yield {
            (language, javascript): stack.enter_context(
                visitor(chromium, served.client.url, language=language, javascript=javascript)
            )
            for language, javascript in itertools.product(LANGUAGES, (True, False))
        }


@pytest.mark.parametrize(("people", "path"), pages(), indirect=["people"])
def test_a_page_holds_in_every_layout(people: People, path: str) -> None:
    for (language, javascript), person in people.items():
        page = person.visit(path)
        if language == "ja":
            assert (found := stray_english(page)) == [], found
        for width, theme in itertools.product(WIDTHS, THEMES):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.emulate_media(color_scheme=theme)
            check_page(page, with_axe=javascript)
        assert person.faults == []
