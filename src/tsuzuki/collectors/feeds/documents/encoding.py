"""The characters of a document: which encoding it has, whatever it and its server say about it.

Feeds are often declared wrongly or not at all, and a wrong guess is posted as an unreadable title. So a
declaration counts if the document fits it; else the encoding is found by what the characters make, among those that
the language of the feed is written in first. What fits none is decoded as UTF-8, with U+FFFD for what is not.
"""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence

from charset_normalizer import from_bytes

UNREADABLE_SHARE_MAX = 0.1
"""The share of characters that may be missing in a text that is still read. A single one is always allowed: it is where
a server has cut a text in the middle of a character."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\x00\x00\x00", "utf-32-le"),
    (b"\x00\x00\x00<", "utf-32-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
    (b"\x4c\x6f\xa7\x94", "cp037"),
)
_DECLARATION = re.compile(r"\s*<\?xml\b[^>]{0,500}\?>")
_DECLARED = re.compile(rb"\s*<\?xml\b[^>]{0,400}?\bencoding\s*=\s*[\"']\s*([\w.:+-]{1,40})")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:+-]{1,40})", re.IGNORECASE)
_LANGUAGE = re.compile(
    rb"<(?:dc:)?language>\s*([A-Za-z]{2,3})|xml:lang\s*=\s*[\"']([A-Za-z]{2,3})", re.IGNORECASE
)
_HEAD_BYTES = 4_096
_CODECS = {
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
}
_NO_CHARSETS = frozenset({"utf_7", "unicode_escape", "raw_unicode_escape", "idna", "punycode"})
"""Codecs of Python that turn plain letters into others."""

_WEAK = frozenset({"ascii", "cp1252"})
"""The defaults of servers. UTF-8 that fits is better."""

_KANA, _HANGUL, _HAN, _CYRILLIC = (
    re.compile(letters)
    for letters in (
        "[\u3041-\u30fe]+",
        "[\uac00-\ud7a3]+",
        "[\u4e00-\u9fff]{2,}",
        "[\u0400-\u04ff]{2,}",
    )
)
_SCRIPTS = (
    ("euc_jp", "euc_jp", _KANA, 0.05),
    ("cp932", "cp932", _KANA, 0.05),
    ("euc_kr", "cp949", _HANGUL, 0.9),
    ("gb2312", "gb18030", _HAN, 0.8),
    ("big5", "big5", _HAN, 0.8),
    ("cp1251", "cp1251", _CYRILLIC, 0.8),
    ("koi8_r", "koi8_r", _CYRILLIC, 0.8),
)
"""What a document must fit, the larger encoding to read it by, and which letters, at least what share, make it likely:
almost any bytes are characters of some of these encodings."""

_RUSSIAN = ("cp1251", "koi8_r", "iso8859_5")
_CENTRAL_EUROPE = ("cp1250", "iso8859_2")
_BY_LANGUAGE: Mapping[str, Sequence[str]] = {
    "ja": ("euc_jp", "cp932"),
    "zh": ("gb18030", "big5"),
    "ko": ("cp949",),
    **dict.fromkeys(("be", "bg", "mk", "ru", "sr", "uk"), _RUSSIAN),
    **dict.fromkeys(("cs", "hr", "hu", "pl", "ro", "sk", "sl"), _CENTRAL_EUROPE),
    "el": ("cp1253",),
    "tr": ("cp1254",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "th": ("cp874",),
}
_CONTROLS = re.compile("[\x80-\x9f]")


def as_utf8(body: bytes, content_type: str) -> bytes:
    """The document in UTF-8, without a declaration of its encoding and without a byte order mark."""
    text = _decoded(body, content_type).lstrip("\ufeff")
    return _DECLARATION.sub("", text, count=1).encode("utf-8", "replace") if text else b""


def is_readable(text: str) -> bool:
    """Whether few enough of its characters are missing."""
    missing = text.count("\ufffd")
    return missing <= max(1, UNREADABLE_SHARE_MAX * len(text))


def codec_of(name: str) -> str | None:
    """The codec by which browsers read this charset; None if there is no such charset."""
    try:
        codec = codecs.lookup(_CODECS.get(name.lower(), name)).name
        b"ab".decode(codec, "replace")  # a codec that is not for text is refused here
    except (LookupError, ValueError):
        return None
    return None if codec.replace("-", "_") in _NO_CHARSETS else codec


def _decoded(body: bytes, content_type: str) -> str:
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body.decode(codec, "replace")
    if b"\x1b$" in body:  # the escapes of ISO-2022-JP, which is ASCII to every other encoding
        return body.decode("iso2022_jp", "replace")
    # What comes after the last tag may be cut off in the middle of a character.
    whole = body[: body.rfind(b"<")] if b"<" in body else body
    for codec in _declared(body, content_type):
        if codec in _WEAK and _fits(whole, "utf-8"):
            return body.decode("utf-8", "replace")
        if _fits(whole, codec):
            return body.decode(codec, "replace")
    codec = "utf-8" if _is_mostly_utf8(whole) else _found(whole)
    return body.decode(codec, "replace")


def _declared(body: bytes, content_type: str) -> Iterator[str]:
    """The encodings that the server and the document name, as codecs."""
    by_server = _CHARSET.search(content_type)
    by_document = _DECLARED.match(body[:_HEAD_BYTES])
    names = [
        by_server[1] if by_server else "",
        by_document[1].decode("ascii") if by_document else "",
    ]
    yield from filter(None, map(codec_of, filter(None, names)))


def _fits(body: bytes, codec: str) -> bool:
    try:
        body.decode(codec)
    except UnicodeError:
        return False
    return True


def _is_mostly_utf8(body: bytes) -> bool:
    """Whether more of what is not ASCII is UTF-8 than not: a few bytes of a document may be broken."""
    text = body.decode("utf-8", "replace")
    missing = text.count("\ufffd")
    return missing == 0 or len(text) - len(text.encode("ascii", "ignore")) > 2 * missing


def _found(body: bytes) -> str:
    """The encoding in which the characters make sense; UTF-8 if there is none."""
    said = _LANGUAGE.search(body[:_HEAD_BYTES])
    language = (said[1] or said[2]).decode("ascii").lower() if said else ""
    by_language = _likely(body, _BY_LANGUAGE.get(language, ()))
    if by_language is not None:
        return by_language
    by_script = list(_by_script(body))
    if by_script and by_script[0] not in _RUSSIAN:
        return by_script[0]
    # Russian in the wrong one of its encodings is Cyrillic letters too.
    return _likely(body, by_script) or _likely(body, ["cp1252"]) or "utf-8"


def _by_script(body: bytes) -> Iterator[str]:
    """The encodings in which the document is written in one script, the likeliest first."""
    for strict, codec, letters, share in _SCRIPTS:
        if _fits(body, strict):
            text = body.decode(strict)
            foreign = len(text) - len(text.encode("ascii", "ignore"))
            if sum(map(len, letters.findall(text))) >= share * foreign:
                yield codec


def _likely(body: bytes, candidates: Sequence[str]) -> str | None:
    """The likeliest of the encodings that the document fits. A text has no control characters."""
    fitting = [
        codec
        for codec in candidates
        if _fits(body, codec) and not _CONTROLS.search(body.decode(codec))
    ]
    best = from_bytes(body, cp_isolation=fitting).best() if fitting else None
    return best.encoding if best is not None and best.encoding in fitting else None
