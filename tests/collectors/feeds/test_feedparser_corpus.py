"""What we keep of an item equals what feedparser's own tests expect of its entries.

`make test-full` runs it: it downloads feedparser's source distribution once. The documents in
`feedparser_differences.txt` are allowed to differ, each for the reason given there.
"""

from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tsuzuki.collectors.feeds.documents.document import without_bombs
from tsuzuki.collectors.feeds.documents.encoding import as_utf8
from tsuzuki.collectors.feeds.entries.entry_reader import Draft, read_entry
from tsuzuki.collectors.feeds.entries.parse import _parse, parse_feed
from tsuzuki.outward.errors import SourceFailed

from .feedparser_corpus import TOO_YOUNG, Claim, Document, as_kept, documents

URL = "http://127.0.0.1:8097/feed.xml"
DIFFERENCES = Path(__file__).with_name("feedparser_differences.txt")

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


def allowed_differences() -> list[str]:
    lines = DIFFERENCES.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def _prepared(document: Document) -> bytes:
    return without_bombs(as_utf8(document.body, document.headers.get("content-type", "")))


def differences(document: Document) -> list[str]:
    """What we keep of the document's entries and its claims about them, where they differ."""
    try:
        feed, raws, _ = _parse(_prepared(document), URL, document.headers)
    except SourceFailed as failure:
        return [f"{document.name}: {failure}"]
    found = []
    for claim in document.claims:
        ours, expected = _kept(claim, feed, raws)
        if ours != expected:
            found.append(f"{document.name}: {claim.path}: {ours!r}, expected {expected!r}")
    return found


def _kept(claim: Claim, feed: dict[str, Any], raws: list[Any]) -> tuple[Any, Any]:
    """Ours and theirs."""
    if claim.path[0] == "feed":
        parsed_title = read_entry(
            {**feed, "link": "https://a.example/"}, base_url=URL, now=TOO_YOUNG
        )
        assert isinstance(parsed_title, Draft)
        return _title(parsed_title, feed), as_kept(
            Claim(("entries", 0, "title"), claim.value), feed
        )
    raw = dict(raws[int(claim.path[1])])
    expected = as_kept(claim, raw)
    # Most of the documents have no link, without which nothing is an item.
    draft = read_entry({"link": "https://a.example/", **raw}, base_url=URL, now=TOO_YOUNG)
    if not isinstance(draft, Draft):
        return draft.problem, expected
    match claim.path[2:]:
        case ("title", *_) | ("title_detail", *_):
            return _title(draft, raw), expected
        case ("summary" | "description" | "summary_detail" | "content", *_):
            name = str(claim.path[2]).removesuffix("_detail")
            only = {"content": ("content",)}.get(name, ("summary", "summary_detail"))
            rest = {key: value for key, value in raw.items() if key in only}
            draft = read_entry({"link": "https://a.example/", **rest}, base_url=URL, now=TOO_YOUNG)
            assert isinstance(draft, Draft)
            return draft.values["excerpt"], expected
        case ("link",):
            return draft.values["url"], expected
        case ("id" | "guid",):
            return draft.values["guid"], expected
        case ("author_detail", "name"):
            return expected in (draft.values["author"] or ""), True
        case ("tags", int() as place, "term"):
            label = raw["tags"][place].get("label") or expected
            return label in draft.values["categories"], True
        case ("published_parsed",):
            return draft.values["stated_at"], expected
        case _:
            return draft.values["updated_at"], expected


def _title(draft: Draft, raw: dict[str, Any]) -> str:
    """Without the words that stand in for a missing title."""
    title = str(draft.values["title"])
    return title if raw.get("title") and title != draft.values["url"] else ""


def test_what_we_keep_is_what_its_tests_expect() -> None:
    allowed = allowed_differences()
    found: list[str] = []
    used: set[str] = set()
    for document in documents():
        if not document.claims:
            continue
        different = differences(document)
        patterns = [pattern for pattern in allowed if fnmatch(document.name, pattern)]
        used |= set(patterns) if different else set()
        found += different if not patterns else []
    assert found == []
    assert sorted(set(allowed) - used) == []


def test_enough_of_the_corpus_speaks_of_what_we_keep() -> None:
    assert len(documents()) >= 2_000
    assert sum(bool(document.claims) for document in documents()) >= 1_000


def test_no_document_makes_the_parser_fail() -> None:
    refused = 0
    for document in documents():
        try:
            parsed = parse_feed(
                document.body,
                url=URL,
                headers=document.headers,
                now=datetime(2026, 11, 17, tzinfo=UTC),
            )
        except SourceFailed:
            refused += 1
        else:
            raws = _parse(_prepared(document), URL, document.headers)[1]
            assert len(parsed.entries) + len(parsed.unusable) == len(raws), document.name
    # Documents that are HTML, empty, CDF, or have nothing of a feed in them.
    assert refused <= 20
