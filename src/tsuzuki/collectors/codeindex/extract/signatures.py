"""The signature of a definition: its text up to its body, on one line."""

import re

from tsuzuki.collectors.codeindex.extract.nesting import VALUES, FoundDefinition
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


def signature_of(text: bytes, found: FoundDefinition) -> str:
    start, end, _, _, kind, _, body, _ = found
    if body >= 0:
        head = text[start : min(body if body > start else end, start + _BYTES_MAX)]
        if b"#" in head:
            head = _COMMENTS_BEFORE_BODY.sub(b"", head)
    else:
        head = text[start : min(end, start + _BYTES_MAX)].lstrip()
        head = head.partition(b"\n" if kind in _FIRST_LINE_ONLY else b"{")[0]
    line = " ".join(head.decode("utf-8", "replace").split())
    return line[:SIGNATURE_CHARACTERS_MAX].rstrip(" {:=")
