"""Checks for every page in a real browser: accessibility, layout, weight, language, and no errors."""

import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Response

from support.chromium import axe_script

WEIGHT_MAX_BYTES = 100_000
REQUESTS_MAX = 8
WIDE, MIDDLE, NARROW = 1280, 768, 320
HEIGHT = 900
WAIT_MS = 60_000
"""Long: the first page of a browser waits for its program and fonts, on a machine that may be busy."""
ENGLISH_WORDS = frozenset(
    "Tsuzuki CLI curl JSON UTC API MCP Ctrl Enter URL SSE RSS CSV SVG HTML HTTP LSP SQLite PostgreSQL Redis GitLab "
    "Google Books Mastodon Gemini English setup git ID IDs ISBN Atom Feed Standard Webhooks Webhook SIGTERM SIGKILL "
    "MiB KiB GiB tsuzuki yaml type verify backfill ci backup Hub Signature Gitlab Token".split()
)
"""Names and terms that Japanese pages have as they are."""

VISIBLE_TEXTS = """() => {
  const left = '[translate=no], [lang=en], code, kbd, pre, script, style, time, option[lang], bdi';
  const found = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.nodeType === 1 ? node : node.parentElement;
    if (element.closest(left)) continue;
    if (node.nodeType === 3) found.push(node.data);
    else for (const name of ['title', 'aria-label', 'placeholder', 'alt', 'data-paused', 'data-lost', 'data-many'])
      if (node.hasAttribute(name)) found.push(node.getAttribute(name));
  }
  return found;
}"""
OVERFLOWING = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))"""
SQUEEZED = """() => [...document.querySelectorAll('main .table-box')].filter((e) => e.querySelector('tr td')
  && getComputedStyle(e.querySelector('tr td')).display === 'table-cell')
  .flatMap((e) => [...e.querySelectorAll('th')]).filter((e) => e.offsetWidth < 40).map((e) => e.innerText)"""
"""Columns of a table, as no card, that have no room for a word."""
AXE = """() => axe.run({ resultTypes: ['violations'] }).then((result) => result.violations.map((violation) =>
  `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`))"""


@dataclass
class Visitor:
    """A browser of one person. `faults` has what went wrong on any of its pages: errors of the console, exceptions,
    violations of the content policy."""

    url: str
    context: BrowserContext
    faults: list[str] = field(default_factory=list)

    @cached_property
    def page(self) -> Page:
        """The one for all visits."""
        return self._new_page()

    def visit(self, path: str) -> Page:
        return self._go(self.page, path)

    def open(self, path: str, *, status: int = 200) -> Page:
        """In a page of its own."""
        return self._go(self._new_page(is_refused=status >= 400), path, status=status)

    def _new_page(self, *, is_refused: bool = False) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
        page.on("console", lambda said: self._note(page, said.type, said.text, is_refused))
        return page

    def _go(self, page: Page, path: str, *, status: int = 200) -> Page:
        response = page.goto(self.url + path)
        assert response is not None
        assert response.status == status, (path, response.status, response.text()[:2000])
        return page

    def _note(self, page: Page, kind: str, text: str, is_refused: bool) -> None:
        is_expected = is_refused and "Failed to load resource" in text
        if kind == "error" and not is_expected:
            self.faults.append(f"{page.url}: {text}")


@contextmanager
def visitor(
    browser: Browser,
    url: str,
    *,
    width: int = WIDE,
    javascript: bool = True,
    language: str = "en",
    theme: str = "light",
    zone: str = "UTC",
) -> Iterator[Visitor]:
    """A person with an empty browser, which must not meet any fault."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        java_script_enabled=javascript,
        locale=language,
        timezone_id=zone,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    person = Visitor(url, context)
    try:
        yield person
        assert person.faults == [], person.faults
    finally:
        context.close()


class Layouts:
    """The layouts that every screen is held to: wide in English and light, narrow in Japanese and dark, and without
    JavaScript. Each has one page, which goes from screen to screen: a new page costs a new process of the browser."""

    def __init__(self, wide: Visitor, narrow: Visitor, plain: Visitor) -> None:
        self._wide, self._narrow, self._plain = self._people = wide, narrow, plain
        session = wide.context.new_cdp_session(wide.page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def check(self, path: str, *, has_twin: bool = True) -> None:
        """A screen in each layout, and its JSON twin. One of the two with JavaScript is held to the rules of
        accessibility: screens alternate."""
        self.forget()
        is_wide_checked = zlib.crc32(path.encode()) % 2 == 0
        with weighed(self._wide.page):
            wide = self._wide.visit(path)
        check_page(wide, with_axe=is_wide_checked)
        if has_twin:
            check_twin(self._wide, path)
        narrow = self._narrow.visit(path)
        check_page(narrow, with_axe=not is_wide_checked)
        assert (found := stray_english(narrow)) == [], (path, found)
        plain = self._plain.visit(path)
        assert plain.locator("h1").first.is_visible(), path
        assert " style=" not in plain.content(), path
        faults = [fault for person in self._people for fault in person.faults]
        assert faults == [], faults

    def forget(self) -> None:
        """Discard faults since the last check, because an open page keeps requesting data that a test has removed."""
        for person in self._people:
            person.faults.clear()


@contextmanager
def layouts(
    browser: Browser, url: str, enter: Callable[[BrowserContext], None] = lambda _context: None
) -> Iterator[Layouts]:
    """`enter` signs a browser in, where that is needed."""
    with ExitStack() as stack:
        people = [
            stack.enter_context(visitor(browser, url)),
            stack.enter_context(visitor(browser, url, width=NARROW, language="ja", theme="dark")),
            stack.enter_context(visitor(browser, url, width=NARROW, javascript=False)),
        ]
        for person in people:
            enter(person.context)
        found = Layouts(*people)
        yield found
        found.forget()


def check_page(page: Page, *, with_axe: bool = True) -> None:
    page.locator("h1").first.wait_for()
    if with_axe:
        page.evaluate(axe_script())
        assert (found := page.evaluate(AXE)) == [], (page.url, found)
    assert (wider := page.evaluate(OVERFLOWING)) == [], (page.url, wider)
    assert (squeezed := page.evaluate(SQUEEZED)) == [], (page.url, squeezed)


@contextmanager
def weighed(page: Page) -> Iterator[None]:
    """Assert that a page without a cache loads little within this block."""
    seen: list[Response] = []

    def note(answer: Response) -> None:
        seen.append(answer)

    page.on("response", note)
    yield
    page.remove_listener("response", note)
    files = [answer for answer in seen if "/api/v1/stream" not in answer.url]
    weight = sum(answer.request.sizes()["responseBodySize"] for answer in files)
    assert len(seen) <= REQUESTS_MAX, [answer.url for answer in seen]
    assert 0 < weight <= WEIGHT_MAX_BYTES, (page.url, weight)


def check_twin(person: Visitor, path: str) -> Any:
    """Fetch and check the JSON version of a page."""
    place, question, query = path.partition("?")
    twin = "/overview" if place == "/" else place
    answer = person.context.request.get(f"{person.url}{twin}.json{question}{query}")
    assert answer.status == 200, answer.text()
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.text())


def stray_english(page: Page) -> list[str]:
    """English words on a Japanese page, except those also used in Japanese."""
    found = []
    for text in page.evaluate(VISIBLE_TEXTS):
        words = set(re.findall(r"[A-Za-z]{2,}", text)) - ENGLISH_WORDS
        if words:
            found.append(text.strip())
    return found


LAYOUT_SHIFT = """() => { window.moved = []; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) for (const {node, previousRect, currentRect} of entry.sources)
    window.moved.push([node?.outerHTML ?? node?.textContent, previousRect, currentRect].map((one) =>
      typeof one === 'string' ? one.slice(0, 200) : JSON.stringify(one)).join(' '));
}).observe({ type: 'layout-shift' }); }"""


def layout_shifts(page: Page, act: Callable[[], None]) -> list[str]:
    """Elements that moved during an action, with old and new positions."""
    page.evaluate(LAYOUT_SHIFT)
    act()
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    moved: list[str] = page.evaluate("window.moved")
    return moved
