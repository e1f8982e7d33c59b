"""The text of an HTML page, its title, and the PDFs that it links to. Runs only in the process of
`documents.worker`."""

from typing import Any
from urllib.parse import urljoin, urlsplit

import lxml.html  # type: ignore[import-untyped]  # it has no stubs
import trafilatura
from trafilatura import html2txt

from tsuzuki.collectors.feeds.documents.text_cleaning import (
    PAGE_CHARACTERS_MAX,
    decoded,
    normalised,
    single_line,
)

MARKUP_CHARACTERS_MAX = 1_500_000
"""What is looked at of a page; more of it takes too long."""

LINKS_MAX = 20
TITLE_CHARACTERS_MAX = 500
_ARTICLE_LINKS = (
    "//a[@href][not(ancestor::nav or ancestor::header or ancestor::footer or ancestor::aside)]"
)

_STYLE = "translate(@style, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ ', 'abcdefghijklmnopqrstuvwxyz')"
_UNSEEN = (
    f"//body//*[@hidden or @aria-hidden='true' or contains({_STYLE}, 'display:none') "
    f"or contains({_STYLE}, 'visibility:hidden') or contains({_STYLE}, 'font-size:0')]"
    " | //nav | //aside | //body/footer | //body/header | //body/a[starts-with(@href, '#')]"
)
"""What a reader of the article does not see, and what is around the article on every page."""


def html_text(body: bytes, *, charset: str | None, url: str) -> dict[str, Any]:
    """`text`, `title`, `links` to PDFs of the same host, and `notes`."""
    markup = decoded(body, charset)
    notes = []
    if len(markup) > MARKUP_CHARACTERS_MAX:
        markup = markup[:MARKUP_CHARACTERS_MAX]
        notes.append(f"only the first {MARKUP_CHARACTERS_MAX} characters of the page were read")
    # Bytes in a known charset: what the page says of its own charset is not asked again.
    parser = lxml.html.HTMLParser(encoding="utf-8")
    tree = lxml.html.document_fromstring(markup.encode("utf-8", errors="replace"), parser=parser)
    title, links = _title(tree), _links(tree, url)
    for element in tree.xpath(_UNSEEN):
        element.drop_tree()
    document = trafilatura.bare_extraction(tree, include_comments=False)
    text = normalised(str(getattr(document, "text", None) or html2txt(_main_part(tree))))
    if len(text) > PAGE_CHARACTERS_MAX:
        text = text[:PAGE_CHARACTERS_MAX]
        notes.append(f"only the first {PAGE_CHARACTERS_MAX} characters of the text were kept")
    return {"text": text, "title": title, "links": links, "notes": notes}


def _main_part(tree: Any) -> Any:
    """The element that holds the article, if the page says so."""
    for path in ("//article", "//main", "//*[@role='main']", "//*[@id='main' or @id='content']"):
        found = [element for element in tree.xpath(path) if element.text_content().strip()]
        if len(found) == 1:
            return found[0]
    return tree


def _title(tree: Any) -> str | None:
    for path in ("//title", "//meta[@property='og:title']/@content", "//h1"):
        for found in tree.xpath(path):
            text = found if isinstance(found, str) else found.text_content()
            if title := single_line(str(text), characters_max=TITLE_CHARACTERS_MAX):
                return title
    return None


def _links(tree: Any, url: str) -> list[dict[str, str]]:
    """PDFs of the same host that the page itself links to, not its frame."""
    base = next((_joined(url, str(base)) for base in tree.xpath("//base/@href")), url)
    links: dict[str, str] = {}
    for link in tree.xpath(_ARTICLE_LINKS):
        target = _joined(base, str(link.get("href")).strip())
        parts = urlsplit(target)
        is_same_host = (
            parts.scheme in ("http", "https") and parts.hostname == urlsplit(url).hostname
        )
        if is_same_host and parts.path.lower().endswith(".pdf"):
            label = single_line(str(link.text_content()), characters_max=200)
            links.setdefault(target.partition("#")[0], label)
        if len(links) >= LINKS_MAX:
            break
    return [{"url": target, "title": label} for target, label in links.items()]


def _joined(base: str, reference: str) -> str:
    """The URL that a reference names, or the base if it names none."""
    try:
        joined = urljoin(base, reference)
        urlsplit(joined)
    except ValueError:
        return base
    return joined
