"""Content-Encoding: bodies decompressed in bounded pieces, so that a small body cannot fill the memory."""

import zlib
from collections.abc import Iterator
from typing import Any

ACCEPTED = "gzip, deflate"
PIECE_BYTES_MAX = 256 * 1024


class NotDecodable(ValueError):
    """The body is not in the encoding that its head names, or ends early."""


class Decoder:
    """Decodes one body. `pieces` yields at most `PIECE_BYTES_MAX` bytes at a time; `finish` it at the end."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise NotDecodable("its encoding was not asked for")
        self._is_gzip = name in ("gzip", "x-gzip")
        self._is_plain = name in ("", "identity")
        self._inflater: Any = None
        self._has_more = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._is_plain:
            yield data
            return
        while data or self._has_more:
            inflater = self._inflater_for(data)
            if inflater is None:
                return
            try:
                piece = inflater.decompress(data, PIECE_BYTES_MAX)
            except zlib.error:
                raise NotDecodable("it is not compressed as its head says") from None
            # A full piece may leave output inside, even if no input is left.
            self._has_more = len(piece) == PIECE_BYTES_MAX and not inflater.eof
            data = inflater.unused_data or inflater.unconsumed_tail
            if piece:
                yield piece

    def finish(self) -> None:
        """Raises `NotDecodable` if the compressed data ended early."""
        if self._inflater is not None and not self._inflater.eof:
            raise NotDecodable("it ends early")

    def _inflater_for(self, data: bytes) -> Any:
        """The decompressor of what comes next; None if that is only padding after the end."""
        if self._inflater is None or (
            self._inflater.eof and self._is_gzip and data.startswith(b"\x1f")
        ):
            self._inflater = self._new_inflater(data)
        return None if self._inflater.eof else self._inflater

    def _new_inflater(self, data: bytes) -> Any:
        if self._is_gzip:
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        # Servers send `deflate` with and without the header of zlib, whose low four bits are always 8.
        return zlib.decompressobj(zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS)
