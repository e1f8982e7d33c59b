"""Extraction of text in a process of its own; see `documents.process`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tsuzuki.collectors.feeds.documents.process import DocumentProcess
from tsuzuki.collectors.feeds.documents.text_cleaning import (
    PAGE_CHARACTERS_MAX,
    decoded,
    normalised,
    stripped_markup,
)
from tsuzuki.collectors.feeds.documents.worker import HTML, SECONDS_MAX
from tsuzuki.collectors.feeds.entries.entry import Attachment

STRIPPED_BYTES_MAX = 1_000_000


class DocumentKind(StrEnum):
    HTML = "html"
    PDF = "pdf"


@dataclass(frozen=True, kw_only=True)
class ExtractedText:
    """What was found in a document. `notes` say what was not."""

    text: str
    title: str | None = None
    links: tuple[Attachment, ...] = ()
    notes: tuple[str, ...] = ()


class TextExtractor(DocumentProcess):
    """Extracts text, one document at a time, from any thread. `close` it, or use it in a `with`."""

    def __init__(self, *, seconds_max: float = SECONDS_MAX) -> None:
        super().__init__(kind=HTML)
        self._seconds_max = seconds_max

    def extract(
        self, body: bytes, *, kind: DocumentKind, url: str, charset: str | None = None
    ) -> ExtractedText:
        """The text of a document. One that cannot be read has an empty text and a note."""
        order = {"kind": kind, "url": url, "charset": charset, "seconds": self._seconds_max}
        answer = self._ask(order, body, seconds_max=self._seconds_max)
        if answer is not None:
            return _extracted(answer)
        if kind is DocumentKind.HTML:
            return _stripped(body, charset)
        return ExtractedText(text="", notes=("reading the PDF took too much time or memory",))


def _extracted(answer: dict[str, Any]) -> ExtractedText:
    return ExtractedText(
        text=str(answer["text"]),
        title=answer["title"],
        links=tuple(
            Attachment(url=link["url"], media_type="application/pdf", title=link["title"] or None)
            for link in answer.get("links", ())
        ),
        notes=tuple(answer["notes"]),
    )


def _stripped(body: bytes, charset: str | None) -> ExtractedText:
    """The text of a page that the library could not read: everything that is no tag."""
    text = normalised(stripped_markup(decoded(body[:STRIPPED_BYTES_MAX], charset)))
    return ExtractedText(
        text=text[:PAGE_CHARACTERS_MAX],
        notes=("the page could not be analyzed; only its tags were removed",),
    )
