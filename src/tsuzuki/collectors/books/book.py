"""A book as a source describes it, made safe to keep: bounded, whole characters, the right types.

What a source says about one book may be wrong in any way without harm to the others; only without a
usable id there is no book.
"""

import re
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, NamedTuple

TITLE_CHARACTERS_MAX = 1_000
DESCRIPTION_CHARACTERS_MAX = 20_000
AUTHORS_MAX = 100
PAGE_COUNT_MAX = 2**31 - 1
UNTITLED = "(untitled)"

_VOLUME_ID = re.compile(r"[!-~]{1,200}")
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


class Book(NamedTuple):
    """One volume. Optional things are None when the source did not say them properly. There are
    thousands, so it is the kind of record that costs least to make."""

    volume_id: str
    title: str
    isbn13: str | None = None
    subtitle: str | None = None
    authors: tuple[str, ...] = ()
    publisher: str | None = None
    published_date: str | None = None
    description: str | None = None
    language: str | None = None
    print_type: str | None = None
    page_count: int | None = None
    info_link: str | None = None

    def authors_json(self) -> str:
        """The names as the database holds them."""
        # What a JSON encoder would write, without one made anew for each book.
        return f"[{','.join(map(encode_basestring, self.authors))}]"

    def content_hash(self) -> str:
        """Changes when anything the source says about the book does."""
        # `ascii` says the same in every version of Python, and takes half the time of JSON.
        return sha256(ascii((*self,)).encode()).hexdigest()


def book_of(volume: object) -> Book | None:
    """The book that a `books#volume` describes, None if it has no usable id."""
    if not isinstance(volume, dict):
        return None
    volume_id = volume.get("id")
    if not isinstance(volume_id, str) or not _VOLUME_ID.fullmatch(volume_id):
        return None
    about = volume.get("volumeInfo")
    info: dict[str, Any] = about if isinstance(about, dict) else {}
    return Book(
        volume_id=volume_id,
        isbn13=_isbn13(info.get("industryIdentifiers")),
        title=_text(info.get("title"), TITLE_CHARACTERS_MAX) or UNTITLED,
        subtitle=_text(info.get("subtitle"), TITLE_CHARACTERS_MAX),
        authors=_authors(info.get("authors")),
        publisher=_text(info.get("publisher"), TITLE_CHARACTERS_MAX),
        published_date=_text(info.get("publishedDate"), 40),
        description=_text(info.get("description"), DESCRIPTION_CHARACTERS_MAX),
        language=_text(info.get("language"), 40),
        print_type=_text(info.get("printType"), 40),
        page_count=_page_count(info.get("pageCount")),
        info_link=_text(info.get("infoLink"), 2_000),
    )


def normalised_isbn13(text: str) -> str | None:
    """An ISBN of either length as its thirteen digits; None if its check digit is wrong."""
    digits = text if text.isalnum() else re.sub(r"[\s-]", "", text)
    if len(digits) == 13 and digits.isascii() and digits.isdigit():
        codes = (
            digits.encode()
        )  # those of "0" to "9": weighted like this, 48 too much is 0 modulo 10
        return digits if (sum(codes[::2]) + 3 * sum(codes[1::2])) % 10 == 0 else None
    digits = digits.upper()
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) and _check_digit_10(digits[:9]) == digits[9]:
        stem = f"978{digits[:9]}"
        return stem + _check_digit_13(stem)
    return None


def _isbn13(identifiers: object) -> str | None:
    """The book's ISBN-13, else the one its ISBN-10 stands for."""
    if not isinstance(identifiers, list):
        return None
    for kind in ("ISBN_13", "ISBN_10"):
        for entry in identifiers:
            if not isinstance(entry, dict) or entry.get("type") != kind:
                continue
            identifier = entry.get("identifier")
            found = normalised_isbn13(identifier) if isinstance(identifier, str) else None
            if found is not None:
                return found
    return None


def _check_digit_13(digits: str) -> str:
    weighted = sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(digits))
    return str(-weighted % 10)


def _check_digit_10(digits: str) -> str:
    weighted = sum(int(digit) * (10 - i) for i, digit in enumerate(digits))
    return "0123456789X"[-weighted % 11]


def _text(value: object, characters_max: int) -> str | None:
    if not isinstance(value, str):
        return None
    if len(value) > characters_max:
        value = value[:characters_max]
    if not value.isascii() or "\x00" in value:
        value = _UNKEEPABLE.sub("\ufffd", value)
    return value.strip() or None


def _authors(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    names = [_text(name, TITLE_CHARACTERS_MAX) for name in value[:AUTHORS_MAX]]
    return tuple([name for name in names if name is not None])


def _page_count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= PAGE_COUNT_MAX else None
