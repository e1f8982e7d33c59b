"""Bodies that are larger than they look, or have no end.

Compressed ones are made of one block that is repeated: after a full flush deflate starts anew, so the block is
valid as often as it is sent, and no memory holds what it unpacks to.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Final

from tsuzuki.sandbox.exchange import Stream

HUGE_BYTES: Final = 10_000_000_000
BLOCK_BYTES: Final = 1024 * 1024
CHUNK_BYTES: Final = 64 * 1024
GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
ZLIB_HEAD: Final = b"\x78\xda"

FEED_HEAD: Final = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel><title>Large</title>'
)
ITEM: Final = b"<item><title>One more</title><link>https://feed.example/more</link></item>\n"
PAGE_HEAD: Final = b"<!DOCTYPE html><html><head><title>Large</title></head><body><article>\n"
PARAGRAPH: Final = b"<p>The report goes on with one more paragraph of the same kind.</p>\n"
PDF_HEAD: Final = (
    b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    b"3 0 obj\n<< /Length 9999999000 >>\nstream\n"
)
PATH_OPERATORS: Final = b"0 0 m 100 100 l S\n"


def huge(head: bytes, filler: bytes, length: int | None = HUGE_BYTES) -> Stream:
    """`head`, then `filler` again and again, `length` bytes in all; None: unannounced and without an end."""

    def chunks() -> Iterator[bytes]:
        yield head
        block = filler * max(CHUNK_BYTES // len(filler), 1)
        if length is None:
            yield from repeat(block)
            return
        for _ in range((length - len(head)) // len(block)):
            yield block
        yield block[: (length - len(head)) % len(block)]

    return Stream(chunks=chunks, length=length)


def huge_feed(length: int | None = HUGE_BYTES) -> Stream:
    return huge(FEED_HEAD, ITEM, length)


def huge_page(length: int | None = HUGE_BYTES) -> Stream:
    return huge(PAGE_HEAD, PARAGRAPH, length)


def huge_pdf(length: int | None = HUGE_BYTES) -> Stream:
    return huge(PDF_HEAD, PATH_OPERATORS, length)


def gzip_bomb(unpacked_bytes: int = HUGE_BYTES) -> Stream:
    """To be sent with `Content-Encoding: gzip`: the start of a feed, then spaces. A thousandth of it is sent."""

    def chunks() -> Iterator[bytes]:
        checksum = 0

        def counted(data: bytes) -> None:
            nonlocal checksum
            checksum = zlib.crc32(data, checksum)

        yield GZIP_HEAD
        yield from _deflated(FEED_HEAD, b" ", unpacked_bytes, counted)
        yield struct.pack("<LL", checksum, unpacked_bytes & 0xFFFFFFFF)

    return Stream(chunks=chunks)


def double_gzip_bomb(unpacked_bytes: int = HUGE_BYTES) -> Stream:
    """To be sent with `Content-Encoding: gzip, gzip`: a few kilobytes unpack to gigabytes."""

    def chunks() -> Iterator[bytes]:
        squeeze = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
        for chunk in gzip_bomb(unpacked_bytes).chunks():
            yield squeeze.compress(chunk)
        yield squeeze.flush()

    return Stream(chunks=chunks)


def zlib_bomb(unpacked_bytes: int, *, filler: bytes = b" ") -> bytes:
    """The same as zlib, whole: for what is compressed inside a file."""
    checksum = 1

    def counted(data: bytes) -> None:
        nonlocal checksum
        checksum = zlib.adler32(data, checksum)

    body = b"".join(_deflated(b"", filler, unpacked_bytes, counted))
    return ZLIB_HEAD + body + struct.pack(">L", checksum)


def _deflated(
    head: bytes, filler: bytes, unpacked_bytes: int, counted: Callable[[bytes], None]
) -> Iterator[bytes]:
    block = filler * (BLOCK_BYTES // len(filler))
    packed = _packed(block)
    left = unpacked_bytes - len(head)
    if head:
        counted(head)
        yield _packed(head)
    while left >= len(block):
        counted(block)
        yield packed
        left -= len(block)
    last = block[:left]
    counted(last)
    yield _packed(last, flush=zlib.Z_FINISH)


def _packed(data: bytes, *, flush: int = zlib.Z_FULL_FLUSH) -> bytes:
    squeeze = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush(flush)
