"""Source files of any encoding as UTF-8. Lines stay the same lines.

A file that is not valid UTF-8 is read as what it declares, then as EUC-JP and Shift_JIS where every byte fits, then as
Latin-1, which always fits.
"""

import codecs
import re

from tsuzuki.collectors.codeindex.extract.symbols import ExtractionFailed

_DECLARED = re.compile(rb"(?:coding|charset|encoding)[:=]\s*[\"']?([-A-Za-z0-9_.]+)")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARATION_BYTES_MAX = 400


def as_utf8(source: bytes) -> bytes:
    """The same text in UTF-8 without a byte order mark; a binary file is refused."""
    if source.startswith(_UTF16_MARKS):
        return source.decode("utf-16", "replace").encode()
    if b"\0" in source:
        raise ExtractionFailed("binary", "the file contains a NUL byte, so it is not text")
    source = source.removeprefix(codecs.BOM_UTF8)
    if source.isascii():
        return source
    try:
        source.decode()
    except UnicodeDecodeError:
        return _decoded(source).encode()
    return source


def _decoded(source: bytes) -> str:
    declared = _DECLARED.findall(source[:_DECLARATION_BYTES_MAX])[:1]
    for encoding in (*(name.decode("ascii") for name in declared), "euc_jp", "cp932"):
        try:
            return source.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue  # it does not fit, or there is no such encoding of text
    return source.decode("latin-1")
