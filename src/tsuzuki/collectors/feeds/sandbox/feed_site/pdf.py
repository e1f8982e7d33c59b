"""PDF files: a small writer of valid ones, and the kinds that must not hurt a reader.

Any text of the Basic Multilingual Plane can be written and read back. The font is one that viewers bring along
for Japanese, so none is embedded. The same text makes the same bytes.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from .bombs import zlib_bomb

LINE_WIDTH: Final = 84
"""In half-width characters."""

LINES_PER_PAGE: Final = 44
MAPPED_AT_ONCE: Final = 100
"""The most a CMap may map in one section."""

REPLACEMENT: Final = "\u3013"
ENCRYPTION: Final = (
    b"<< /Filter /Standard /V 1 /R 2 /P -44 /O <" + b"5A" * 32 + b"> /U <" + b"A5" * 32 + b"> >>"
)
CMAP: Final = """/CIDInit /ProcSet findresource begin
12 dict begin begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
{sections}
endcmap CMapName currentdict /CMap defineresource pop end end
"""


def pdf(text: str, *, title: str = "") -> bytes:
    """A PDF with this text, in as many pages as it needs."""
    return _file(_objects(text, title), info=4)


def encrypted_pdf() -> bytes:
    """One that asks for a password that no one has."""
    return _file(_objects("Not for you.", ""), info=4, encryption=ENCRYPTION)


def broken_pdf() -> bytes:
    """The first half of one: the table of its objects is lost."""
    whole = pdf("Cut off.")
    return whole[: len(whole) // 2]


def bomb_pdf(unpacked_bytes: int = 1_000_000_000) -> bytes:
    """One whose only page unpacks to so many bytes; the file has a five-hundredth."""
    objects = _objects("", "")
    packed = zlib_bomb(unpacked_bytes, filler=b"0 0 m 9 9 l S \n")
    objects[-1] = _stream(packed, b"/Filter /FlateDecode")
    return _file(objects, info=4)


def many_pages_pdf(pages: int) -> bytes:
    """Every page names its number on its first line; the other lines are empty."""
    blank = "\n" * LINES_PER_PAGE
    return pdf(blank.join(f"Page {number}" for number in range(1, pages + 1)))


def looping_pdf() -> bytes:
    """One whose page tree holds itself."""
    objects = _objects("Round and round.", "")
    objects[1] = b"<< /Type /Pages /Count 2 /Kids [8 0 R 2 0 R] >>"
    return _file(objects, info=4)


def image_only_pdf() -> bytes:
    """A page without any text, as a scanner makes it."""
    objects = _objects("", "")
    objects[-1] = _stream(b"q 400 0 0 400 50 200 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x80 EI Q", b"")
    return _file(objects, info=4)


def _objects(text: str, title: str) -> list[bytes]:
    """Catalogue, page tree, font, information, font parts; then each page and its content."""
    safe = "".join(char if ord(char) < 0x10000 else REPLACEMENT for char in text)
    lines = list(_lines(safe)) or [""]
    pages = [lines[at : at + LINES_PER_PAGE] for at in range(0, len(lines), LINES_PER_PAGE)]
    first = 8
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiKakuGo-W5-UniJIS-UCS2-H"
        b" /Encoding /UniJIS-UCS2-H /DescendantFonts [5 0 R] /ToUnicode 7 0 R >>",
        b"<< /Producer (Tsuzuki sandbox) /Title <FEFF%s> >>" % _hex(title),
        b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiKakuGo-W5 /DW 1000"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >>"
        b" /FontDescriptor 6 0 R >>",
        b"<< /Type /FontDescriptor /FontName /HeiseiKakuGo-W5 /Flags 4 /ItalicAngle 0 /Ascent 752"
        b" /Descent -221 /CapHeight 737 /StemV 114 /FontBBox [-92 -250 1010 922] >>",
        _packed(_cmap(safe)),
    ]
    for number, page in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (first + 2 * number + 1)
        )
        objects.append(_packed(_page(page)))
    return objects


def _lines(text: str) -> Iterator[str]:
    """Lines short enough for the page; a full-width character is as wide as two."""
    for paragraph in text.splitlines():
        line, width = "", 0
        for char in paragraph:
            wide = 2 if ord(char) > 0x2E7F else 1
            if width + wide > LINE_WIDTH:
                yield line
                line, width = "", 0
            line, width = line + char, width + wide
        yield line


def _page(lines: Sequence[str]) -> bytes:
    shown = b"".join(b"<%s> Tj T*\n" % _hex(line) for line in lines)
    return b"BT /F1 10 Tf 16 TL 60 780 Td\n" + shown + b"ET\n"


def _cmap(text: str) -> bytes:
    codes = sorted({f"{ord(char):04X}" for char in text} - {"000A"})
    sections = []
    for at in range(0, len(codes), MAPPED_AT_ONCE):
        part = codes[at : at + MAPPED_AT_ONCE]
        mapped = "\n".join(f"<{code}> <{code}>" for code in part)
        sections.append(f"{len(part)} beginbfchar\n{mapped}\nendbfchar")
    return CMAP.replace("{sections}", "\n".join(sections)).encode()


def _hex(text: str) -> bytes:
    return text.encode("utf-16-be", "replace").hex().upper().encode()


def _packed(data: bytes) -> bytes:
    return _stream(zlib.compress(data, 9), b"/Filter /FlateDecode")


def _stream(data: bytes, filters: bytes) -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), filters, data)


def _file(objects: Sequence[bytes], *, info: int, encryption: bytes | None = None) -> bytes:
    """The objects with the table that says where each one starts."""
    parts = [b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"]
    offsets, at = [], len(parts[0])
    for number, body in enumerate(objects, 1):
        offsets.append(at)
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        at += len(parts[-1])
    size = len(objects) + 1
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table))
    extra = b" /Encrypt %s" % encryption if encryption else b""
    identity = b"/ID [<%s> <%s>]" % ((b"0123456789ABCDEF" * 2,) * 2)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R %s%s >>\n"
    parts.append(trailer % (size, info, identity, extra))
    parts.append(b"startxref\n%d\n%%%%EOF\n" % at)
    return b"".join(parts)
