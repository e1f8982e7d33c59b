"""Content that is the same for all clients: answered from memory, compressed once, not sent to one that has it."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from fastapi import Request, Response


@dataclass(frozen=True)
class EncodedContent:
    """Compressed forms are made when first asked for."""

    content: bytes

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:12]

    @cached_property
    def gzip(self) -> bytes:
        return gzip.compress(self.content, 9, mtime=0)

    @cached_property
    def brotli(self) -> bytes | None:
        """None without the package, which is not needed."""
        try:
            packed: bytes = import_module("brotli").compress(self.content)
        except ModuleNotFoundError:
            return None
        return packed

    def encoded(self, accepted: str) -> tuple[bytes, str | None]:
        """The smallest form that a client takes, and the name of its encoding."""
        names = {part.partition(";")[0].strip() for part in accepted.lower().split(",")}
        if "br" in names and self.brotli is not None:
            return self.brotli, "br"
        return (self.gzip, "gzip") if "gzip" in names else (self.content, None)

    def answer(self, request: Request, *, media_type: str, cache_control: str) -> Response:
        """The content, or 304 for a client that has it."""
        etag = f'"{self.digest}"'
        headers = {"Cache-Control": cache_control, "ETag": etag, "Vary": "Accept-Encoding"}
        known = request.headers.get("if-none-match", "").split(",")
        if etag in (one.strip().removeprefix("W/") for one in known):
            return Response(status_code=304, headers=headers)
        content, encoding = self.encoded(request.headers.get("accept-encoding", ""))
        if encoding:
            headers["Content-Encoding"] = encoding
        return Response(content, headers=headers, media_type=media_type)
