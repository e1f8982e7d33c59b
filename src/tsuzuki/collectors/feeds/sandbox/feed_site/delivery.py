"""How one body is sent: status, validators, conditional requests, compression, speed.

The default is a server that does everything right (RFC 9110). Each field of `FeedDelivery` makes it one of the
servers that do not. Dates come from the site, never from a clock.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from enum import StrEnum
from fnmatch import fnmatch
from functools import cached_property
from http import HTTPStatus

from tsuzuki.sandbox.exchange import Response, StandInRequest, Stream

FROZEN_ETAG = '"frozen"'
ERROR_PAGE = (
    "<!DOCTYPE html><html><head><title>{title}</title></head>"
    "<body><h1>{title}</h1><p>The site is being looked after. Please try again later.</p></body></html>"
)


class EtagKind(StrEnum):
    """What stands in the ETag header."""

    STRONG = "strong"
    WEAK = "weak"
    FROZEN = "frozen"
    """Always the same one, also for other content: the server says 304 to a changed feed."""

    ABSENT = "absent"


class DateKind(StrEnum):
    """What stands in the Last-Modified header."""

    TRUE = "true"
    ODD_FORMAT = "odd_format"
    """Not an HTTP date; only the same text is recognised again."""

    WRONG_ZONE = "wrong_zone"
    """Japanese time that calls itself GMT: what changes within nine hours is answered with 304."""

    ABSENT = "absent"


class Conditional(StrEnum):
    """Which conditions of a request the server looks at."""

    BOTH = "both"
    ETAG_ONLY = "etag_only"
    DATE_ONLY = "date_only"
    IGNORED = "ignored"
    ALWAYS_304 = "always_304"
    """304 to every condition, also to one that does not match."""


class Compression(StrEnum):
    """Content-Encoding of the body, if the client accepts it."""

    NONE = "none"
    GZIP = "gzip"
    DEFLATE = "deflate"
    RAW_DEFLATE = "raw_deflate"
    """Called deflate, without the zlib header, as some servers send it."""


@dataclass(frozen=True, kw_only=True)
class FeedDelivery:
    status: int = 200
    location: str | None = None
    """Where a redirect leads: any text; `{base}` is the site. Needs a status such as 301."""

    retry_after: str | None = None
    body: bytes | None = None
    """Sent instead of the content: a sign-in page, an error page, nothing (`b""`)."""

    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: EtagKind = EtagKind.STRONG
    last_modified: DateKind = DateKind.TRUE
    conditional: Conditional = Conditional.BOTH
    compression: Compression = Compression.NONE
    compressed_always: bool = False
    """Compress also for a client that did not ask for it."""

    chunked: bool = False
    """Send without a Content-Length."""

    pause_seconds: float = 0.0
    chunk_bytes: int = 1024
    """With a pause, so many bytes are sent between two pauses."""

    required: Mapping[str, str] = field(default_factory=dict)
    """Request headers that must match (`*` for any text); 403 without them."""

    def __post_init__(self) -> None:
        if not 200 <= self.status <= 599:
            raise ValueError("status is a number from 200 to 599")
        if self.pause_seconds < 0 or self.chunk_bytes < 1:
            raise ValueError("pause_seconds is not negative, chunk_bytes is at least 1")


@dataclass(frozen=True, kw_only=True)
class Content:
    """What is at a path now."""

    body: bytes | Stream
    content_type: str
    changed_at: datetime

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:20] if isinstance(self.body, bytes) else ""


def deliver(request: StandInRequest, content: Content, delivery: FeedDelivery) -> Response:
    for name, pattern in delivery.required.items():
        if not fnmatch(request.headers.get(name, ""), pattern):
            return _error(request, 403, FeedDelivery())
    if delivery.status != HTTPStatus.OK:
        return _error(request, delivery.status, delivery)
    if delivery.body is not None:
        content = Content(
            body=delivery.body, content_type="text/html", changed_at=content.changed_at
        )
    validators = _validators(content, delivery)
    headers = {**validators, **delivery.headers}
    if _is_unmodified(request, content, delivery, validators):
        return Response(status=304, headers=headers)
    return _whole(request, content, delivery, headers)


def _whole(
    request: StandInRequest, content: Content, delivery: FeedDelivery, headers: dict[str, str]
) -> Response:
    kind = content.content_type if delivery.content_type is None else delivery.content_type
    if isinstance(content.body, Stream):
        return Response(stream=content.body, content_type=kind, headers=headers)
    body = content.body
    name = _coding(delivery.compression)
    accepted = request.headers.get("Accept-Encoding", "")
    if name and (delivery.compressed_always or name in accepted):
        body = _compressed(body, delivery.compression)
        headers |= {"Content-Encoding": name, "Vary": "Accept-Encoding"}
    if not (delivery.pause_seconds or delivery.chunked):
        return Response(body=body, content_type=kind, headers=headers)
    stream = Stream(
        chunks=lambda: _pieces(body, delivery.chunk_bytes),
        length=None if delivery.chunked else len(body),
        pause_seconds=delivery.pause_seconds,
    )
    return Response(stream=stream, content_type=kind, headers=headers)


def _error(request: StandInRequest, status: int, delivery: FeedDelivery) -> Response:
    """Any answer but the content: a redirect, a refusal, a failure."""
    headers = dict(delivery.headers)
    if delivery.location is not None:
        location = delivery.location.replace("{base}", request.base_url)
        # Sent as UTF-8, as sites do that do not escape their addresses.
        headers["Location"] = location.encode().decode("latin-1")
    if delivery.retry_after is not None:
        headers["Retry-After"] = delivery.retry_after
    known = {one.value: one.phrase for one in HTTPStatus}
    page = ERROR_PAGE.format(title=f"{status} {known.get(status, '')}".strip())
    body = page.encode() if delivery.body is None else delivery.body
    kind = delivery.content_type or "text/html; charset=utf-8"
    return Response(status=status, body=body, content_type=kind, headers=headers)


def _validators(content: Content, delivery: FeedDelivery) -> dict[str, str]:
    found = {}
    match delivery.etag:
        case EtagKind.FROZEN:
            found["ETag"] = FROZEN_ETAG
        case EtagKind.STRONG | EtagKind.WEAK if content.digest:
            found["ETag"] = f'{"W/" * (delivery.etag is EtagKind.WEAK)}"{content.digest}"'
    match delivery.last_modified:
        case DateKind.TRUE:
            found["Last-Modified"] = http_date(content.changed_at)
        case DateKind.WRONG_ZONE:
            found["Last-Modified"] = http_date(content.changed_at + timedelta(hours=9))
        case DateKind.ODD_FORMAT:
            found["Last-Modified"] = f"{content.changed_at:%Y-%m-%d %H:%M:%S} JST"
    return found


def _is_unmodified(
    request: StandInRequest, content: Content, delivery: FeedDelivery, validators: Mapping[str, str]
) -> bool:
    """If-None-Match decides where it is sent and looked at, and If-Modified-Since otherwise."""
    etags = request.headers.get("If-None-Match")
    since = request.headers.get("If-Modified-Since")
    rule = delivery.conditional
    if rule is Conditional.IGNORED:
        return False
    if rule is Conditional.ALWAYS_304:
        return etags is not None or since is not None
    if etags is not None and rule is not Conditional.DATE_ONLY:
        return _names_etag(etags, validators.get("ETag"))
    if since is None or rule is Conditional.ETAG_ONLY:
        return False
    return since == validators.get("Last-Modified") or _is_since(since, content.changed_at)


def _names_etag(sent: str, current: str | None) -> bool:
    """Weak comparison, as If-None-Match asks for."""
    if current is None:
        return False
    listed = [one.strip().removeprefix("W/") for one in sent.split(",")]
    return sent.strip() == "*" or current.removeprefix("W/") in listed


def _is_since(sent: str, changed_at: datetime) -> bool:
    try:
        moment = parsedate_to_datetime(sent)
    except ValueError:
        return False
    return moment.replace(tzinfo=moment.tzinfo or UTC) >= changed_at.replace(microsecond=0)


def http_date(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC), usegmt=True)


def _coding(compression: Compression) -> str:
    match compression:
        case Compression.GZIP:
            return "gzip"
        case Compression.DEFLATE | Compression.RAW_DEFLATE:
            return "deflate"
        case _:
            return ""


def _compressed(body: bytes, compression: Compression) -> bytes:
    if compression is Compression.GZIP:
        return gzip.compress(body, mtime=0)
    window = -zlib.MAX_WBITS if compression is Compression.RAW_DEFLATE else zlib.MAX_WBITS
    squeeze = zlib.compressobj(wbits=window)
    return squeeze.compress(body) + squeeze.flush()


def _pieces(body: bytes, size: int) -> Iterator[bytes]:
    for position in range(0, len(body), size):
        yield body[position : position + size]
