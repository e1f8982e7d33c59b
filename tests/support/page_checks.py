"""What every page is held to, in a real browser: accessibility, layout, weight, language, and no error at all."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Response

from support.chromium import axe_script

WEIGHT_MAX_BYTES = 100_000
REQUESTS_MAX = 8
WIDE, NARROW = 1280, 320
HEIGHT = 900
ENGLISH_WORDS = frozenset(
    "Tsuzuki CLI curl JSON UTC API MCP Ctrl Enter URL SSE RSS CSV SVG HTML HTTP LSP SQLite PostgreSQL Redis GitLab "
    "Google Books Mastodon Gemini English setup".split()
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
AXE = """() => axe.run({ resultTypes: ['violations'] }).then((result) => result.violations.map((violation) =>
  `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`))"""


@dataclass
class Visitor:
    """A browser of one person. `faults` has what went wrong on any of its pages: errors of the console, exceptions,
    violations of the content policy."""

    url: str
    context: BrowserContext
    faults: list[str] = field(default_factory=list)

    def open(self, path: str, *, status: int = 200) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.faults.append(f"{path}: {error}"))
        page.on("console", lambda said: self._note(path, said.type, said.text, status))
        response = page.goto(self.url + path)
        assert response is not None
        assert response.status == status, (path, response.status, response.text()[:2000])
        return page

    def _note(self, path: str, kind: str, text: str, status: int) -> None:
        is_expected = status >= 400 and "Failed to load resource" in text
        if kind == "error" and not is_expected:
            self.faults.append(f"{path}: {text}")


@contextmanager
def visitor(
    browser: Browser,
    url: str,
    *,
    width: int = WIDE,
    javascript: bool = True,
    language: str = "en",
    theme: str = "light",
) -> Iterator[Visitor]:
    """A person with an empty browser, which must not meet any fault."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        java_script_enabled=javascript,
        locale=language,
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(20_000)
    person = Visitor(url, context)
    try:
        yield person
        assert person.faults == [], person.faults
    finally:
        context.close()


def check_screen(browser: Browser, url: str, path: str, *, ready: str = "h1") -> None:
    """A page at both widths and without JavaScript, in alternating language and theme; and its JSON twin."""
    with visitor(browser, url) as person:
        check_weight(person, path)
        check_page(person.open(path), ready)
        check_twin(person, path)
    with visitor(browser, url, width=NARROW, language="ja", theme="dark") as person:
        page = person.open(path)
        check_page(page, ready)
        assert (found := stray_english(page)) == [], found
    with visitor(browser, url, javascript=False, width=NARROW) as person:
        page = person.open(path)
        assert page.locator(ready).first.is_visible()
        assert " style=" not in page.content()


def check_page(page: Page, ready: str = "h1") -> None:
    page.locator(ready).first.wait_for()
    page.evaluate(axe_script())
    assert (found := page.evaluate(AXE)) == [], found
    assert (wider := page.evaluate(OVERFLOWING)) == [], wider


def check_weight(person: Visitor, path: str) -> None:
    """Of the first visit, without a cache."""
    seen: list[Response] = []
    page = person.context.new_page()
    page.on("response", lambda answer: seen.append(answer))  # noqa: PLW0108 - a method of C takes no marks
    page.goto(person.url + path)
    page.wait_for_load_state("load")
    files = [answer for answer in seen if "/api/v1/stream" not in answer.url]
    weight = sum(answer.request.sizes()["responseBodySize"] for answer in files)
    assert len(seen) <= REQUESTS_MAX, [answer.url for answer in seen]
    assert weight <= WEIGHT_MAX_BYTES, weight
    page.close()


def check_twin(person: Visitor, path: str) -> Any:
    """The same view as JSON: its value."""
    place, question, query = path.partition("?")
    twin = "/overview" if place == "/" else place
    answer = person.context.request.get(f"{person.url}{twin}.json{question}{query}")
    assert answer.status == 200, answer.text()
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.text())


def stray_english(page: Page) -> list[str]:
    """Texts of a Japanese page that have English words in them, beside those that Japanese has too."""
    found = []
    for text in page.evaluate(VISIBLE_TEXTS):
        words = set(re.findall(r"[A-Za-z]{2,}", text)) - ENGLISH_WORDS
        if words:
            found.append(text.strip())
    return found


LAYOUT_SHIFT = """() => { window.shifts = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shifts += entry.value;
}).observe({ type: 'layout-shift' }); }"""


def measure_layout_shift(page: Page, act: Callable[[], None]) -> float:
    """How far things moved while something happened; 0 if nothing did."""
    page.evaluate(LAYOUT_SHIFT)
    act()
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    moved: float = page.evaluate("window.shifts")
    return moved
