"""The signature of a definition: its text up to its body, on one line."""

import re

from tsuzuki.collectors.codeindex.extract.nesting import VALUES, Found
from tsuzuki.collectors.codeindex.extract.symbols import SIGNATURE_CHARACTERS_MAX, SymbolKind

_BYTES_MAX = 4 * SIGNATURE_CHARACTERS_MAX
_FIRST_LINE_ONLY = VALUES | {
    SymbolKind.MACRO,
    SymbolKind.MEMBER,
    SymbolKind.HEADING,
    SymbolKind.KEY,
    SymbolKind.ID,
    SymbolKind.RULE,
    SymbolKind.PROPERTY,
    SymbolKind.TABLE,
}
_COMMENTS_BEFORE_BODY = re.compile(rb":\s*(?:#[^\n]*\s*)+$")


def signature_of(text: bytes, found: Found) -> str:
    end = found.body if found.body > found.start else found.end
    head = text[found.start : min(end, found.start + _BYTES_MAX)]
    if found.body >= 0 and b"#" in head:
        head = _COMMENTS_BEFORE_BODY.sub(b"", head)
    if found.body < 0:
        head = head.lstrip()
        head = (
            head.partition(b"\n")[0] if found.kind in _FIRST_LINE_ONLY else head.partition(b"{")[0]
        )
    line = " ".join(head.decode("utf-8", "replace").split())
    return line[:SIGNATURE_CHARACTERS_MAX].rstrip(" {:=")
