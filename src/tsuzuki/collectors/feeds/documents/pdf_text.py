"""The text of a PDF, within limits of pages, characters and time. Runs in the process of `documents.worker` only."""

import io
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from tsuzuki.collectors.feeds.documents.text_cleaning import (
    PAGE_CHARACTERS_MAX,
    normalised,
    single_line,
)
from tsuzuki.model.clock import SystemClock

PAGES_MAX = 200
TITLE_CHARACTERS_MAX = 500


def pdf_text(body: bytes, *, seconds_max: float) -> dict[str, Any]:
    """`text`, `title` and `notes`. What cannot be read leaves an empty text and a note."""
    clock = SystemClock()
    ends_at = clock.monotonic() + seconds_max
    try:
        reader = PdfReader(io.BytesIO(body), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            return _nothing("the PDF is protected by a password")
        pages_total = len(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _nothing("the PDF is damaged and cannot be read")
    notes, texts, characters = [], [], 0
    for number in range(pages_total):
        if number >= PAGES_MAX or characters > PAGE_CHARACTERS_MAX or clock.monotonic() > ends_at:
            notes.append(f"only {number} of {pages_total} pages of the PDF were read")
            break
        text = _page_text(reader, number)
        if text is None:
            notes.append(f"page {number + 1} of the PDF cannot be read")
        texts.append(text or "")
        characters += len(texts[-1])
    text = "\n\n".join(filter(None, texts))[:PAGE_CHARACTERS_MAX]
    if not text and not notes:
        notes.append("the PDF has no text; it may consist of images")
    return {"text": text, "title": _title(reader), "notes": notes[:5]}


def _page_text(reader: PdfReader, number: int) -> str | None:
    try:
        return normalised(reader.pages[number].extract_text())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 -- a damaged page fails in any way; the others are read
        return None


def _title(reader: PdfReader) -> str | None:
    try:
        title = reader.metadata.title if reader.metadata else None
    except Exception:  # noqa: BLE001 -- as above
        return None
    return single_line(str(title), characters_max=TITLE_CHARACTERS_MAX) if title else None


def _nothing(note: str) -> dict[str, Any]:
    return {"text": "", "title": None, "notes": [note]}
