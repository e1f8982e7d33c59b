"""The page of an item and its attachments: downloaded, and turned into one text.

What fails for now (no answer, an error of the server, a pause it asks for) fails the item, which is tried again. What
will stay so (a file that is gone, locked, too large) only leaves a note, as long as there is other text.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from tsuzuki.collectors.feeds.documents.text_cleaning import (
    PAGE_CHARACTERS_MAX,
    decoded,
    normalised,
    single_line,
)
from tsuzuki.collectors.feeds.documents.text_extractor import (
    DocumentKind,
    ExtractedText,
    TextExtractor,
)
from tsuzuki.collectors.feeds.entries.entry import Attachment
from tsuzuki.collectors.feeds.items.item import ItemReason
from tsuzuki.outward.errors import SourceFailed
from tsuzuki.outward.retry_after import seconds_asked
from tsuzuki.outward.safe_download import Downloaded, SafeDownloader, TooLarge
from tsuzuki.outward.web_url import checked_url, keeps_secrets

ACCEPT = "text/html, application/xhtml+xml, application/pdf;q=0.9, text/plain;q=0.8, */*;q=0.1"
HEADING_CHARACTERS_MAX = 200
_GONE = frozenset({410, 451})
_FOR_NOW = frozenset({"http_408", "http_425", "http_429"})
_NOT_READ = ("audio/", "video/", "image/", "font/")
_NONE: Mapping[str, str] = MappingProxyType({})


class PageFailed(Exception):
    """The page of an item cannot be had. `reason` is stored with the item."""

    def __init__(
        self,
        message: str,
        *,
        reason: ItemReason = ItemReason.DOWNLOAD_FAILED,
        code: str = "download_failed",
        is_permanent: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.code = code
        self.is_permanent = is_permanent
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, kw_only=True)
class ItemPage:
    """What an item says. An empty `text` is no failure: the page may not be ready."""

    final_url: str
    title: str | None
    text: str
    content_hash: str
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    """How pages are asked for. `sensitive_headers` go only to the origin of the URL `sensitive_origin`."""

    bytes_max: int
    headers: Mapping[str, str]
    sensitive_headers: Mapping[str, str]
    sensitive_origin: str | None

    def secrets_for(self, url: str) -> Mapping[str, str]:
        if self.sensitive_origin is None or not self.sensitive_headers:
            return _NONE
        is_same = keeps_secrets(checked_url(self.sensitive_origin), checked_url(url))
        return self.sensitive_headers if is_same else _NONE


def download_page(  # noqa: PLR0913 -- each is a limit or a setting of its own, by keyword
    downloader: SafeDownloader,
    *,
    url: str,
    attachments: Sequence[Attachment] = (),
    attachments_max: int,
    bytes_max: int,
    headers: Mapping[str, str] = _NONE,
    sensitive_headers: Mapping[str, str] = _NONE,
    sensitive_origin: str | None = None,
    extractor: TextExtractor | None = None,
) -> ItemPage:
    """The text of a page and of its attachments; if there are none, of the PDFs that the page links to.

    Raises `PageFailed`. Give an `extractor` if there are several pages: its process is started once.
    """
    request = _Request(
        bytes_max=bytes_max,
        headers=headers,
        sensitive_headers=sensitive_headers,
        sensitive_origin=sensitive_origin,
    )
    with ExitStack() as stack:
        extractor = extractor or stack.enter_context(TextExtractor())
        got = _download(downloader, url, request)
        page = _extract(extractor, got)
        files = _wanted(attachments, page.links, known={url, got.final_url})
        found = _Files(downloader=downloader, extractor=extractor, request=request)
        for file in files[:attachments_max]:
            found.read(file)
    if not page.text and not found.texts and found.failure is not None:
        raise found.failure
    notes = [*page.notes, *found.notes]
    if len(files) > attachments_max:
        notes.append(f"{len(files) - attachments_max} more attachments were not read")
    return _page(got.final_url, page, found.texts, notes)


class _Files:
    """The attachments that were read so far."""

    def __init__(
        self, *, downloader: SafeDownloader, extractor: TextExtractor, request: _Request
    ) -> None:
        self._downloader = downloader
        self._extractor = extractor
        self._request = request
        self.texts: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.failure: PageFailed | None = None

    def read(self, file: Attachment) -> None:
        """Raises `PageFailed` if a later try may succeed."""
        heading = _heading(file)
        try:
            got = _download(self._downloader, file.url, self._request)
        except PageFailed as failure:
            if not _stays(failure):
                raise
            self.failure = self.failure or failure
            self.notes.append(f"{heading}: {failure.message}")
            return
        document = _extract(self._extractor, got)
        self.notes += [f"{heading}: {note}" for note in document.notes]
        if document.text:
            self.texts.append((heading, document.text))


def _wanted(
    named: Sequence[Attachment], linked: Sequence[Attachment], *, known: set[str]
) -> list[Attachment]:
    """The attachments to read, each once: those that the entry names, else those that the page links to."""
    readable = [file for file in named if not (file.media_type or "").lower().startswith(_NOT_READ)]
    by_url: dict[str, Attachment] = {}
    for file in readable or linked:
        by_url.setdefault(file.url, file)
    return [file for file in by_url.values() if file.url not in known]


def _download(downloader: SafeDownloader, url: str, request: _Request) -> Downloaded:
    try:
        got = downloader.get(
            url,
            headers=request.headers,
            bytes_max=request.bytes_max,
            accept=ACCEPT,
            sensitive_headers=request.secrets_for(url),
        )
    except TooLarge as problem:
        raise PageFailed(
            problem.message,
            reason=ItemReason.FILE_TOO_LARGE,
            code=problem.specific_code,
            is_permanent=True,
        ) from None
    except SourceFailed as problem:
        raise PageFailed(
            problem.message,
            code=problem.specific_code,
            is_permanent=problem.permanent,
            retry_after_seconds=problem.retry_after_seconds,
        ) from None
    if not 200 <= got.status < 300:
        raise PageFailed(
            f"{urlsplit(got.final_url).hostname} answered {got.status}",
            code=f"http_{got.status}",
            is_permanent=got.status in _GONE,
            retry_after_seconds=seconds_asked(
                got.headers.get("retry-after"), now=downloader.clock.now()
            ),
        )
    return got


def _extract(extractor: TextExtractor, got: Downloaded) -> ExtractedText:
    """The text by what the body is, not by what its name or its server say."""
    body = got.body
    if b"%PDF-" in body[:1024]:
        return extractor.extract(body, kind=DocumentKind.PDF, url=got.final_url)
    is_markup = (
        got.media_type in ("", "text/html", "application/xhtml+xml") or body.lstrip()[:1] == b"<"
    )
    if got.media_type == "text/plain" and not is_markup:
        return ExtractedText(text=normalised(decoded(body, got.charset))[:PAGE_CHARACTERS_MAX])
    if is_markup:
        if not body.strip():
            return ExtractedText(text="", notes=("the page is empty",))
        return extractor.extract(
            body, kind=DocumentKind.HTML, url=got.final_url, charset=got.charset
        )
    kind = single_line(got.media_type, characters_max=80)
    if kind == "application/pdf":
        return ExtractedText(text="", notes=("the file is labeled as a PDF but is not one",))
    return ExtractedText(text="", notes=(f"files of type {kind} are not supported",))


def _stays(failure: PageFailed) -> bool:
    """Whether an attachment will hardly be there later. A page may be: many are announced before they are up."""
    is_client_error = failure.code.startswith("http_4") and failure.code not in _FOR_NOW
    return failure.is_permanent or is_client_error


def _heading(file: Attachment) -> str:
    """What an attachment is called, on one line."""
    name = unquote(file.url.partition("?")[0].rpartition("/")[2])
    heading = single_line(file.title or name, characters_max=HEADING_CHARACTERS_MAX)
    return heading or "Attachment"


def _page(
    final_url: str, page: ExtractedText, files: Sequence[tuple[str, str]], notes: list[str]
) -> ItemPage:
    headings = [f"## {heading}\n\n" for heading, _ in files]
    room = PAGE_CHARACTERS_MAX - sum(map(len, headings)) - 2 * len(files)
    texts = [page.text, *(text for _, text in files)]
    shares = _shares([len(text) for text in texts], room)
    if sum(map(len, texts)) > room:
        notes = [*notes, f"the text was cut to {PAGE_CHARACTERS_MAX} characters"]
    kept = [text[:share].rstrip() for text, share in zip(texts, shares, strict=True)]
    parts = [kept[0], *(h + text for h, text in zip(headings, kept[1:], strict=True))]
    text = "\n\n".join(filter(None, parts))
    digest = hashlib.sha256(f"{page.title or ''}\0{text}".encode()).hexdigest()
    return ItemPage(
        final_url=final_url, title=page.title, text=text, content_hash=digest, notes=notes
    )


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """How much of each text is kept: short ones whole, the long ones the same of what is left."""
    shares = [0] * len(lengths)
    left = room
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for done, index in enumerate(order):
        shares[index] = min(lengths[index], left // (len(lengths) - done))
        left -= shares[index]
    return shares
