"""Filters, which leave entries out before a model is asked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from support.moving_clock import NOON
from tsuzuki.collectors.feeds.entries.entry import FeedEntry
from tsuzuki.collectors.feeds.entries.filters import EntryFilter, newest, oldest_first
from tsuzuki.collectors.feeds.options import FeedOptions

ENTRY = FeedEntry(
    url="https://a.example/tram",
    canonical_url="https://a.example/tram",
    title="The Tram timetable",
    published_at=NOON - timedelta(days=2),
    author="Ann Lee",
    categories=("city", "transport"),
    content_hash="",
    fingerprints=("url:1",),
)


def cause(entry: FeedEntry = ENTRY, **options: Any) -> str | None:
    known = FeedOptions.model_validate({"url": "https://a.example/feed", **options})
    return EntryFilter(known).cause(entry, now=NOON)


@pytest.mark.parametrize(
    "patterns",
    [
        {"title": ["tram"]},
        {"title": ["bus", "^the tram"]},
        {"url": [r"/tram$"]},
        {"author": ["ann"]},
        {"category": ["^city$"]},
        {"title": ["bus"], "category": ["transport"]},
    ],
)
def test_one_match_of_any_key_is_a_match(patterns: dict[str, list[str]]) -> None:
    assert cause(include=patterns) is None
    assert str(cause(exclude=patterns)).startswith("excluded: its ")


def test_what_matches_nothing_of_include_is_left_out() -> None:
    assert cause(include={"title": ["bus"]}) == "not included: matches no pattern of `include`"
    assert cause(exclude={"title": ["bus"]}) is None


def test_exclude_goes_before_include() -> None:
    assert cause(include={"title": ["tram"]}, exclude={"author": ["lee"]}) == (
        "excluded: its author matches lee"
    )


def test_what_is_too_old_is_left_out_and_what_has_no_date_is_not() -> None:
    assert cause(max_age=86_400) == "too old: published 2026-02-27 12:00 UTC"
    assert cause(max_age=86_400 * 2) is None
    assert cause(replace(ENTRY, published_at=None), max_age=1) is None


def test_entries_in_the_order_of_their_dates() -> None:
    dates = [NOON, None, NOON - timedelta(days=1), NOON, None]
    entries = [replace(ENTRY, url=str(n), published_at=date) for n, date in enumerate(dates)]
    assert [entry.url for entry in newest(entries, 3)] == ["1", "4", "0"]
    assert [entry.url for entry in oldest_first(entries)] == ["2", "3", "0", "4", "1"]
