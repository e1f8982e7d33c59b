"""What a download gives: the response with its body, read within its limit of bytes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpcore2

from tsuzuki.outward.content_encoding import Decoder, NotDecodable
from tsuzuki.outward.errors import SourceRefused

ERROR_BODY_BYTES_MAX = 64 * 1024
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)


class TooLarge(SourceRefused):
    """The body is larger than its limit. Reading stopped there."""

    code = "too_large"


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """A response that came whole, with any status."""

    status: int
    final_url: str
    moved_permanently_to: str | None
    """Where the permanent redirects at the start led, if there were any."""

    headers: Mapping[str, str]
    """By names in lower case."""

    body: bytes
    media_type: str
    """In lower case, without parameters; empty if the server names none."""

    charset: str | None


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    """One response, redirects too. Of a response that is no success only the start of the body is kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_answer(response: httpcore2.Response, *, host: str, bytes_max: int) -> HttpAnswer:
    """The response with its decoded body. Raises `TooLarge` and `NotDecodable`."""
    headers = _headers(response)
    is_success = response.status < 300
    if is_success and _length(headers) > bytes_max:
        raise _too_large(host, bytes_max)
    limit = bytes_max if is_success else min(bytes_max, ERROR_BODY_BYTES_MAX)
    try:
        body, is_whole = _read(response, Decoder(headers.get("content-encoding", "")), limit)
    except NotDecodable:
        if is_success:
            raise
        body, is_whole = b"", False
    if is_success and not is_whole:
        raise _too_large(host, bytes_max)
    return HttpAnswer(status=response.status, headers=headers, body=body)


def downloaded(
    answer: HttpAnswer, *, final_url: str, moved_permanently_to: str | None
) -> Downloaded:
    content_type = answer.headers.get("content-type", "")
    charset = _CHARSET.search(content_type)
    return Downloaded(
        status=answer.status,
        final_url=final_url,
        moved_permanently_to=moved_permanently_to,
        headers=answer.headers,
        body=answer.body,
        media_type=content_type.partition(";")[0].strip().lower(),
        charset=charset[1].lower() if charset else None,
    )


def _headers(response: httpcore2.Response) -> dict[str, str]:
    """By lower-case name; repeated ones joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _read(response: httpcore2.Response, decoder: Decoder, limit: int) -> tuple[bytes, bool]:
    """The decoded body, and whether it is whole: reading stops at the limit of bytes, as they come or as they are
    decoded."""
    body, received = bytearray(), 0
    for chunk in response.iter_stream():
        received += len(chunk)
        for piece in decoder.pieces(chunk):
            body += piece
            if len(body) > limit:
                return bytes(body[:limit]), False
        if received > limit:
            return bytes(body), False
    decoder.finish()
    return bytes(body), True


def _length(headers: Mapping[str, str]) -> int:
    said = headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else 0


def _too_large(host: str, bytes_max: int) -> TooLarge:
    return TooLarge(
        f"{host} sent more than {bytes_max} bytes",
        hint="To allow such files, raise `download_megabytes`.",
    )
