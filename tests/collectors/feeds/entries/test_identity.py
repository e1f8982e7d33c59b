"""What makes two entries the same article, and what does not."""

import pytest

from tsuzuki.collectors.feeds.entries.identity import (
    Identifiers,
    canonical_url,
    fingerprints_of,
    in_feed,
    shares_guids,
)

BRIDGE = "https://news.example/2026/bridge"


def entry(url: str = BRIDGE, guid: str | None = None) -> Identifiers:
    return Identifiers(canonical_url=canonical_url(url), guid=guid)


def fingerprints(identifiers: Identifiers) -> set[str]:
    return set(fingerprints_of([identifiers])[0])


@pytest.mark.parametrize(
    "url",
    [
        "http://news.example/2026/bridge",
        "https://www.news.example/2026/bridge",
        "https://m.news.example/2026/bridge",
        "https://NEWS.example./2026/bridge",
        "https://news.example:443/2026/bridge",
        "http://news.example:80/2026/bridge/",
        "https://news.example/2026/bridge?utm_source=rss&utm_medium=feed",
        "https://news.example/2026/bridge?fbclid=x#comments",
        "https://news.example/2026/bridge?ref=rss",
        "https://news.example/2026/bridge#xtor=RSS-1",
        "https://news.example/2026/%62ridge",
    ],
)
def test_addresses_of_the_same_page(url: str) -> None:
    assert canonical_url(url) == BRIDGE


@pytest.mark.parametrize(
    "url",
    [
        "https://news.example/2026/Bridge",
        "https://other.example/2026/bridge",
        "https://mobile.news.example/2026/bridge",
        "https://news.example:8443/2026/bridge",
        "https://news.example/2026/bridge?page=2",
        "https://news.example/2026/bridge?ref=main",
        "https://news.example/2026/bridge?source=17",
        "https://news.example/2026/bridge#v1.2",
        "https://news.example/2026%2Fbridge",
        "https://news.example/2026/%83e%83X",
        "https://news.example/2026/%83e%83Y",
        "https://news.example/2026/bridge?q=%83e",
        "https://news.example/2026/bridge?q=%83f",
    ],
)
def test_addresses_of_other_pages(url: str) -> None:
    others = [canonical_url(other) for other in _others(url)]
    assert canonical_url(url) not in others


def _others(url: str) -> list[str]:
    known = [
        BRIDGE,
        "https://news.example/2026/%83e%83X",
        "https://news.example/2026/%83e%83Y",
        "https://news.example/2026/bridge?q=%83e",
        "https://news.example/2026/bridge?q=%83f",
    ]
    return [other for other in known if other != url]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://news.example/橋", "https://news.example/%E6%A9%8B"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("https://news.example/?b=2&a=1", "https://news.example?a=1&b=2"),
        ("https://www.m.news.example/", "https://news.example"),
        ("https://news.example/a b", "https://news.example/a%20b"),
    ],
)
def test_one_address_in_two_spellings(one: str, other: str) -> None:
    assert canonical_url(one) == canonical_url(other)


@pytest.mark.parametrize("guid", ["", "0", "false", "https://news.example/", "http://"])
def test_what_is_no_guid(guid: str) -> None:
    known = fingerprints_of([entry(guid=guid)], feed_urls=["https://news.example/"])
    assert known == fingerprints_of([entry()])


def test_a_guid_of_its_feed_counts_in_its_feed_only() -> None:
    (own,) = fingerprints(entry(guid="17")) - fingerprints(entry())
    (everywhere,) = fingerprints(entry(guid="tag:news.example,2026:1")) - fingerprints(entry())
    assert in_feed(own, 1) != in_feed(own, 2)
    assert in_feed(everywhere, 1) == in_feed(everywhere, 2)


@pytest.mark.parametrize("url", ["https://m.example/1", "https://www.example/1"])
def test_a_name_that_would_leave_no_site_stays(url: str) -> None:
    assert canonical_url(url) == url


def test_a_site_that_moved_is_known_by_its_paths() -> None:
    old = fingerprints(entry(guid=f"{BRIDGE}?p=1"))
    moved = "https://new.example/2026/bridge"
    assert old & fingerprints(entry(moved, guid=f"{moved}?p=1"))
    assert old & fingerprints(entry(moved))
    # A guid that does not move with the site is what it is known by.
    assert not old & fingerprints(entry(moved, guid="17"))
    assert not old & fingerprints(entry("https://new.example/"))


def test_one_path_on_two_hosts_of_a_document_is_no_identity() -> None:
    two = [entry(), entry("https://other.example/2026/bridge")]
    first, second = fingerprints_of(two)
    assert not set(first) & set(second)
    assert len(first) == 1


def test_one_guid_for_two_articles_is_no_identity_and_for_one_listed_twice_it_is() -> None:
    assert shares_guids([entry(guid="17"), entry(f"{BRIDGE}2", guid="17")])
    assert not shares_guids([entry(guid="17"), entry(guid="17")])
    assert [len(known) for known in fingerprints_of([entry(guid="17"), entry(guid="17")])] == [2, 2]
