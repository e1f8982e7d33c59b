"""Decompression: bounded pieces, and nothing lost."""

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from tsuzuki.outward.content_encoding import PIECE_BYTES_MAX, Decoder, NotDecodable

RANDOM = random.Random(7).randbytes(700_000)


def raw_deflate(data: bytes) -> bytes:
    maker = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return maker.compress(data) + maker.flush()


def decoded(encoding: str, wire: bytes, chunk: int) -> bytes:
    decoder = Decoder(encoding)
    parts = [
        piece
        for position in range(0, len(wire), chunk)
        for piece in decoder.pieces(wire[position : position + chunk])
    ]
    decoder.finish()
    assert all(len(piece) <= max(PIECE_BYTES_MAX, chunk) for piece in parts)
    return b"".join(parts)


@pytest.mark.parametrize("chunk", [1, 1_000, 65_536, 10_000_000])
@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
    ],
)
def test_a_body_is_decoded_however_it_is_cut(
    encoding: str, compress: Callable[[bytes], bytes], chunk: int
) -> None:
    for data in (b"", b"a", b"abc" * 500_000 if chunk > 1 else b"abc" * 500, RANDOM[: chunk * 700]):
        assert decoded(encoding, compress(data), chunk) == data


def test_gzip_in_several_members_and_with_padding_is_read_to_its_end() -> None:
    wire = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 512
    assert decoded("gzip", wire, 7) == b"one two"
    assert decoded("gzip", wire, 10_000) == b"one two"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_ends_early_is_not_taken_for_whole(encoding: str) -> None:
    whole = gzip.compress(RANDOM) if encoding == "gzip" else zlib.compress(RANDOM)
    with pytest.raises(NotDecodable, match="ends early"):
        decoded(encoding, whole[:-50], 4_096)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    with pytest.raises(NotDecodable, match="not asked for"):
        Decoder(encoding)


def test_a_bomb_is_decoded_in_pieces() -> None:
    bomb = zlib.compress(b"\0" * 30_000_000, 9)
    tracemalloc.start()
    try:
        sizes = [len(piece) for piece in Decoder("deflate").pieces(bomb)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 30_000_000
    assert peak < 8 * PIECE_BYTES_MAX
