"""The entries of a fetched feed, stored: what is new becomes an item, what is known is recognised.

The feed that lists an article first owns its item; the others are noted. Of a first fetch only the newest
`backfill` entries are worked on. An entry that is not worked on becomes an item all the same, processed and with
the cause, so that it is known from then on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from tsuzuki.collectors.feeds.entries.entry import FeedEntry, ParsedFeed
from tsuzuki.collectors.feeds.entries.filters import EntryFilter, newest, oldest_first
from tsuzuki.collectors.feeds.entries.identity import (
    in_feed,
    is_of_guid,
    is_of_link,
    shared_guids_mark,
)
from tsuzuki.collectors.feeds.entries.recognition import (
    KnownArticle,
    compared,
    host_of,
    is_same_article,
)
from tsuzuki.collectors.feeds.items.item import ItemStatus
from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.queries import found_items
from tsuzuki.collectors.feeds.queries.feeds import StoredFeed
from tsuzuki.collectors.feeds.queries.found_items import ROWS_MAX
from tsuzuki.store.sql.advisory_lock import lock_until_commit

LOCK_KEY = 0x6665656473  # "feeds": one transaction at a time looks entries up and adds those it did not find

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ParsedEntries:
    """What came of the entries of a document."""

    new: int = 0
    """Items that wait to be worked on."""

    left_out: int = 0
    """New items that are not worked on: filtered, or of a first fetch beyond `backfill`."""

    changed: int = 0
    """Known items about which the feed says something else now."""

    known: int = 0
    unusable: int = 0


class _Document:
    """The entries of one document by their items: each article once, with all its fingerprints."""

    def __init__(self, feed_id: int, entries: Sequence[FeedEntry], *, is_guid_used: bool) -> None:
        self.fingerprints: dict[str, list[str]] = {}
        self.entries: dict[str, FeedEntry] = {}
        keys: dict[str, str] = {}
        for entry in entries:
            stored = [
                in_feed(one, feed_id)
                for one in entry.fingerprints
                if is_guid_used or not is_of_guid(one)
            ]
            key = keys.setdefault(entry.url, stored[0])
            self.entries.setdefault(key, entry)
            own = self.fingerprints.setdefault(key, [])
            own += [one for one in stored if one not in own]


def store_entries(
    connection: Connection,
    feed: StoredFeed,
    options: FeedOptions,
    parsed: ParsedFeed,
    *,
    now: datetime,
) -> ParsedEntries:
    """Store what a document holds, in the caller's transaction."""
    lock_until_commit(connection, LOCK_KEY)
    mark = shared_guids_mark(feed.id)
    is_marked = bool(found_items.ids_by_fingerprint(connection, [mark]))
    is_guid_used = not (parsed.shares_guids or is_marked)
    document = _Document(feed.id, parsed.entries, is_guid_used=is_guid_used)
    item_ids = _recognised(connection, document)
    changed, was_listed = _store_known(connection, feed, document, item_ids, now)
    new = [entry for key, entry in document.entries.items() if key not in item_ids]
    is_first = feed.first_good_at is None and not was_listed
    causes = _causes(new, options, is_first=is_first, now=now)
    added = _store_new(connection, feed, document, oldest_first(new), causes, now)
    if (
        parsed.shares_guids
        and not is_marked
        and (some := next(iter([*added, *item_ids.values()]), 0))
    ):
        found_items.add_fingerprints(connection, [(mark, some)])
    found_items.add_unusable(connection, feed.id, parsed.unusable, now=now)
    left_out = sum(cause is not None for cause in added.values())
    return ParsedEntries(
        new=len(added) - left_out,
        left_out=left_out,
        changed=changed,
        known=len(document.entries) - len(added),
        unusable=len(parsed.unusable),
    )


def _recognised(connection: Connection, document: _Document) -> dict[str, int]:
    """The items of the entries that are known: by their links, else by a hint that nothing contradicts."""
    every = [one for stored in document.fingerprints.values() for one in stored]
    known: dict[str, int] = {}
    for part in _parts(every):
        known.update(found_items.ids_by_fingerprint(connection, part))
    recognised: dict[str, int] = {}
    hints: dict[str, list[int]] = {}
    for key, stored in document.fingerprints.items():
        link = next((known[one] for one in stored if is_of_link(one) and one in known), None)
        if link is not None:
            recognised[key] = link
        elif hinted := [known[one] for one in stored if one in known]:
            hints[key] = hinted
    recognised |= _believed(connection, document, hints, listed=set(recognised.values()))
    for key in recognised:
        # What is left are the fingerprints to add.
        stored = document.fingerprints[key]
        document.fingerprints[key] = [one for one in stored if one not in known]
    return recognised


def _believed(
    connection: Connection, document: _Document, hints: dict[str, list[int]], *, listed: set[int]
) -> dict[str, int]:
    """The items that hints lead to and nothing contradicts. `listed` ones are in the document under their own link."""
    wanted = sorted({item_id for hinted in hints.values() for item_id in hinted} - listed)
    articles: dict[int, KnownArticle] = {}
    for part in _parts(wanted):
        articles |= {one.item_id: one for one in found_items.known_articles(connection, part)}
    hosts = {host_of(entry.canonical_url) for entry in document.entries.values()}
    believed: dict[str, int] = {}
    for key, hinted in hints.items():
        for article in [articles[one] for one in hinted if one in articles]:
            seen = compared(document.entries[key], article, hosts=hosts)
            if is_same_article(seen):
                # Each article once: a second entry that hints at it is another one.
                believed[key] = articles.pop(article.item_id).item_id
                break
    return believed


def _store_known(
    connection: Connection,
    feed: StoredFeed,
    document: _Document,
    item_ids: dict[str, int],
    now: datetime,
) -> tuple[int, bool]:
    """Note what is new about known items: how many changed, and whether the feed has listed one before."""
    entries = {item_id: document.entries[key] for key, item_id in item_ids.items()}
    changed, was_listed = 0, False
    for part in _parts(list(entries)):
        known = found_items.known_items(connection, feed.id, part)
        was_listed = was_listed or any(one.is_listed for one in known)
        different = [
            (one.item_id, entries[one.item_id])
            for one in known
            if one.owner_feed_id == feed.id
            and one.content_hash != entries[one.item_id].content_hash
        ]
        found_items.set_changed(connection, different, now=now)
        unlisted = [one.item_id for one in known if not one.is_listed]
        found_items.add_listed(connection, feed.id, unlisted, now=now)
        changed += len(different)
    found_items.add_fingerprints(
        connection,
        [(one, item_id) for key, item_id in item_ids.items() for one in document.fingerprints[key]],
    )
    return changed, was_listed


def _causes(
    new: Sequence[FeedEntry], options: FeedOptions, *, is_first: bool, now: datetime
) -> dict[str, str]:
    """Why new entries are not worked on, by url."""
    entry_filter = EntryFilter(options)
    filtered = {entry.url: entry_filter.cause(entry, now=now) for entry in new}
    causes = {url: cause for url, cause in filtered.items() if cause is not None}
    if is_first and options.backfill != "all":
        rest = [entry for entry in new if entry.url not in causes]
        wanted = {entry.url for entry in newest(rest, options.backfill)}
        why = f"listed before the feed was added (backfill: {options.backfill})"
        causes |= {entry.url: why for entry in rest if entry.url not in wanted}
    return causes


def _store_new(
    connection: Connection,
    feed: StoredFeed,
    document: _Document,
    new: Sequence[FeedEntry],
    causes: dict[str, str],
    now: datetime,
) -> dict[int, str | None]:
    """Add items; those that were added, with the cause of those that are not worked on."""
    keys = {entry.url: key for key, entry in document.entries.items()}
    added: dict[int, str | None] = {}
    for part in _parts(new):
        ids = found_items.add_items(
            connection,
            [
                (entry, ItemStatus.PROCESSED if entry.url in causes else ItemStatus.UNPROCESSED)
                for entry in part
            ],
            now=now,
        )
        details = [(ids[e.url], e, causes.get(e.url)) for e in part if e.url in ids]
        waiting = [item_id for item_id, _, cause in details if cause is None]
        found_items.add_details(connection, feed.id, details)
        found_items.own_waiting(connection, feed.id, waiting)
        added |= {item_id: cause for item_id, _, cause in details}
        stored = {entry.url: entry for entry in part if entry.url not in ids}
        by_url = found_items.ids_by_url(connection, list(stored)) if stored else {}
        _own(connection, feed, {by_url[url]: stored[url] for url in by_url})
        ids |= by_url
        found_items.add_listed(connection, feed.id, list(ids.values()), now=now)
        found_items.add_fingerprints(
            connection,
            [
                (one, item_id)
                for url, item_id in ids.items()
                for one in document.fingerprints[keys[url]]
            ],
        )
    return added


def _own(connection: Connection, feed: StoredFeed, entries: dict[int, FeedEntry]) -> None:
    """Let the feed own the items of which no feed has said anything."""
    if not entries:
        return
    unsaid = [
        one.item_id
        for one in found_items.known_items(connection, feed.id, list(entries))
        if one.owner_feed_id in (None, feed.id) and not one.content_hash
    ]
    details = [(item_id, entries[item_id], None) for item_id in unsaid]
    found_items.add_details(connection, feed.id, details)
    found_items.own_waiting(connection, feed.id, unsaid)


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(rows), ROWS_MAX):
        yield rows[first : first + ROWS_MAX]
