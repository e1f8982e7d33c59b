"""What a source says about a book, made safe to keep."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsuzuki.collectors.books.book import UNTITLED, Book, book_of, normalised_isbn13
from tsuzuki.collectors.books.sandbox.google_books import volume

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    "title subtitle authors publisher publishedDate description language printType pageCount "
    "infoLink industryIdentifiers".split()
)


@pytest.mark.parametrize(
    ("written", "isbn13"),
    [
        ("978-4-87311-932-8", "9784873119328"),
        ("9784873119328", "9784873119328"),
        ("0306406152", "9780306406157"),
        ("0-306-40615-2", "9780306406157"),
        ("080442957X", "9780804429573"),
        ("080442957x", "9780804429573"),
        ("9784873119329", None),
        ("0306406153", None),
        ("", None),
        ("ISBN", None),
        ("97848731193289", None),
        ("\uff19784873119328", None),
    ],
)
def test_an_isbn_of_either_length_becomes_thirteen_digits(written: str, isbn13: str | None) -> None:
    assert normalised_isbn13(written) == isbn13


def test_the_isbn_13_goes_before_the_isbn_10() -> None:
    both = [
        {"type": "ISBN_10", "identifier": "0306406152"},
        {"type": "ISBN_13", "identifier": "9784873119328"},
    ]
    book = book_of(volume(1, industryIdentifiers=both))
    assert book is not None
    assert book.isbn13 == "9784873119328"


def test_a_book_without_an_isbn_is_kept() -> None:
    book = book_of(volume(1, industryIdentifiers=[{"type": "OTHER", "identifier": "x"}]))
    assert book is not None
    assert book.isbn13 is None


@pytest.mark.parametrize(
    "item", [None, 1, [], {}, {"id": 1}, {"id": ""}, {"id": "a b"}, {"id": "é"}, {"id": "x" * 201}]
)
def test_without_a_usable_id_there_is_no_book(item: object) -> None:
    assert book_of(item) is None


def test_what_cannot_be_kept_is_replaced_and_what_is_too_long_is_cut() -> None:
    book = book_of(volume(1, title="a\x00b\ud83d", description="x" * 50_000, pageCount=2**40))
    assert book is not None
    assert (book.title, len(book.description or ""), book.page_count) == (
        "a\ufffdb\ufffd",
        20_000,
        None,
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYS, JSON))
def test_nothing_a_source_says_about_a_book_breaks_it(about: dict[str, Any]) -> None:
    book = book_of({"id": "v1", "volumeInfo": about})
    assert isinstance(book, Book)
    assert book.title
    assert len(book.content_hash()) == 64


def test_the_content_hash_tells_a_change() -> None:
    one, same, other = book_of(volume(1)), book_of(volume(1)), book_of(volume(1, title="python 2"))
    assert one is not None
    assert same is not None
    assert other is not None
    assert one.content_hash() == same.content_hash() != other.content_hash()
    nameless = book_of({"id": "v1"})
    assert nameless is not None
    assert nameless.title == UNTITLED
