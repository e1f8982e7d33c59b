"""A Chromium, one served workspace per module, and a visitor that must not meet any fault."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from support import page_checks
from support.chromium import OneChromium
from support.page_checks import WAIT_MS, Layouts, Visitor, visitor
from support.page_site import page_site
from support.web_client import Served

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def chromium(one_chromium: OneChromium) -> Iterator[Browser]:
    with one_chromium.lent() as browser:
        yield browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with page_site(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.fixture(scope="module")
def layouts(chromium: Browser, site: Served) -> Iterator[Layouts]:
    with page_checks.layouts(chromium, site.client.url) as found:
        yield found


@pytest.fixture
def person(chromium: Browser, site: Served) -> Iterator[Visitor]:
    with visitor(chromium, site.client.url) as found:
        yield found
