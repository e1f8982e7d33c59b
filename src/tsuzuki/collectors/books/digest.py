"""The digest of new books, as text and as HTML, safe for any title.

Titles come from outside and may hold anything. In headers and text, characters that end a line, move a
cursor or turn the reading direction are gone; in HTML everything is escaped and stands in `bdi`; only
http(s) links are links. What is sent depends on the mail and its books alone, so that a mail which is
sent again is the same mail.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from hashlib import sha256
from html import escape
from urllib.parse import urlsplit

from tsuzuki.collectors.books.book import Book

SUBJECT_CHARACTERS_MAX = 150
EXCERPT_CHARACTERS_MAX = 300

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp", "Co", "Cn"})


@dataclass(frozen=True, kw_only=True)
class Digest:
    """A mail's words, before it has addresses."""

    subject: str
    text: str
    html: str


def compose(job_name: str, chosen: Sequence[Book]) -> Digest:
    heading = f"{len(chosen)} new {'book' if len(chosen) == 1 else 'books'}"
    # A title that looks like an encoded word would be decoded to what is in it.
    title = one_line(chosen[0].title).replace("=?", "= ?")
    return Digest(
        subject=shortened(f"[{job_name}] {heading}: {title}", SUBJECT_CHARACTERS_MAX),
        text="\n".join([heading, "", *map(_text_entry, chosen)]),
        html=_HTML.format(heading=heading, entries="\n".join(map(_html_entry, chosen))),
    )


def message_of(
    digest: Digest,
    *,
    message_id: str,
    written_at: datetime,
    sender: str,
    recipients: Sequence[str],
) -> EmailMessage:
    """The digest as it travels."""
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Subject"] = digest.subject
    message["Message-ID"] = message_id
    message["Date"] = written_at
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(digest.text, cte="quoted-printable")
    message.add_alternative(digest.html, subtype="html", cte="quoted-printable")
    # Left alone it would be random. `=_` cannot stand in quoted-printable text.
    message.set_boundary(f"=_{sha256(message_id.encode()).hexdigest()[:32]}")
    return message


def one_line(text: str) -> str:
    """The same words on one line, without what cannot be seen."""
    visible = (
        " " if unicodedata.category(letter) in _UNSEEN else letter
        for letter in text
        if letter not in _TURNING
    )
    return " ".join("".join(visible).split())


def shortened(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 3].rstrip() + "..."


def _lines(book: Book) -> list[str]:
    """What is worth saying under a title."""
    said = (
        book.subtitle,
        ", ".join(book.authors),
        " · ".join(part for part in (book.publisher, book.published_date) if part),
        f"ISBN {book.isbn13}" if book.isbn13 else None,
        book.description and shortened(one_line(book.description), EXCERPT_CHARACTERS_MAX),
    )
    return [one_line(line) for line in said if line]


def _text_entry(book: Book) -> str:
    link = _link(book)
    lines = [*_lines(book), *([link] if link else [])]
    return "\n".join([f"* {one_line(book.title)}", *(f"  {line}" for line in lines), ""])


def _html_entry(book: Book) -> str:
    title = f"<bdi>{escape(one_line(book.title))}</bdi>"
    link = _link(book)
    if link:
        title = f'<a href="{escape(link)}">{title}</a>'
    lines = "".join(f"<br><bdi>{escape(line)}</bdi>" for line in _lines(book))
    return f"<li><strong>{title}</strong>{lines}</li>"


def _link(book: Book) -> str | None:
    """The book's page, if it is a plain web address."""
    link = book.info_link
    if not link or re.search(r"[\s\x00-\x1f\x7f<>\"']", link) or one_line(link) != link:
        return None
    try:
        return link if urlsplit(link).scheme in ("http", "https") else None
    except ValueError:
        return None


_HTML = """<!DOCTYPE html>
<html><head><meta charset="utf-8"></head><body>
<h1 style="font-size:1.2em">{heading}</h1>
<ul>
{entries}
</ul>
</body></html>
"""
