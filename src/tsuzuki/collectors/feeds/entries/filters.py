"""Filters: which entries of a feed are worked on at all. They cost nothing, so they come before the model."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from tsuzuki.collectors.feeds.entries.entry import FeedEntry
from tsuzuki.collectors.feeds.options import FeedOptions, Patterns

_KEYS = ("title", "url", "author", "category")


class EntryFilter:
    """The filters of one feed: `exclude`, `include` and `max_age`."""

    def __init__(self, options: FeedOptions) -> None:
        self._include = _compiled(options.include)
        self._exclude = _compiled(options.exclude)
        self._max_age = None if options.max_age is None else timedelta(seconds=options.max_age)

    def cause(self, entry: FeedEntry, *, now: datetime) -> str | None:
        """Why the entry is left out; None if it is not."""
        excluded = _match(self._exclude, entry)
        if excluded is not None:
            key, pattern = excluded
            return f"excluded: its {key} matches {pattern}"
        if self._include and _match(self._include, entry) is None:
            return "not included: matches no pattern of `include`"
        if self._max_age is not None and entry.published_at is not None:
            age = now - entry.published_at
            if age > self._max_age:
                return f"too old: published {entry.published_at:%Y-%m-%d %H:%M} UTC"
        return None


def newest(entries: Iterable[FeedEntry], count: int) -> list[FeedEntry]:
    """The newest of them. Those without a date come first, in the order of the document."""
    ordered = sorted(
        enumerate(entries),
        key=lambda one: (-_seconds(one[1].published_at), one[0]),
    )
    return [entry for _, entry in ordered[:count]]


def oldest_first(entries: Iterable[FeedEntry]) -> list[FeedEntry]:
    """In the order in which they came to be, as far as it is known: the first in a document is the newest."""
    ordered = sorted(
        enumerate(entries),
        key=lambda one: (_seconds(one[1].published_at), -one[0]),
    )
    return [entry for _, entry in ordered]


def _seconds(moment: datetime | None) -> float:
    return float("inf") if moment is None else moment.timestamp()


def _compiled(patterns: Patterns) -> list[tuple[str, re.Pattern[str]]]:
    return [
        (key, re.compile(pattern, re.IGNORECASE))
        for key in _KEYS
        for pattern in getattr(patterns, key)
    ]


def _match(patterns: list[tuple[str, re.Pattern[str]]], entry: FeedEntry) -> tuple[str, str] | None:
    for key, pattern in patterns:
        if any(pattern.search(text) for text in _texts(entry, key)):
            return key, pattern.pattern
    return None


def _texts(entry: FeedEntry, key: str) -> tuple[str, ...]:
    match key:
        case "title":
            return (entry.title,)
        case "url":
            return (entry.url,)
        case "author":
            return (entry.author,) if entry.author else ()
        case _:
            return entry.categories
