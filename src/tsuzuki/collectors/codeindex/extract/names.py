"""Names as people write them: without quotes, marks and the ends of a heading."""

import re

from tsuzuki.collectors.codeindex.extract.symbols import SymbolKind

_SEPARATORS = str.maketrans({":": "/", ".": "/", "\\": "/", "*": "", "&": "", " ": ""})
_QUOTES = "\"'"
_TYPE_ARGUMENTS = re.compile(r"<[^/]*>")
_CONVERSION = re.compile(r"(operator\s+\w[^()]*?)\s*\(.*", re.DOTALL)
"""`operator int() const`, of which the parser gives all as the name."""

_EXPORTS = re.compile(r"^(?:module/)?exports(?:/|$)")


def clean_name(kind: SymbolKind, written: str) -> str:
    match kind:
        case SymbolKind.KEY | SymbolKind.TABLE | SymbolKind.ID:
            return _unquoted(written)
        case SymbolKind.HEADING:
            return " ".join(written.split()).rstrip("#").rstrip()
        case SymbolKind.PROPERTY | SymbolKind.METHOD:
            return _CONVERSION.sub(r"\1", written.removeprefix(":") or written)
        case SymbolKind.MACRO:
            return written.partition("=")[0]
        case _:
            return written


def clean_path(written: str) -> str:
    """`a::b`, `a.b` and `a\\b` as a container path, without type arguments and JavaScript's `prototype`."""
    plain = _TYPE_ARGUMENTS.sub("", written).translate(_SEPARATORS)
    path = "/".join(part for part in plain.split("/") if part)
    return _EXPORTS.sub("", path).removesuffix("/prototype")


def _unquoted(written: str) -> str:
    if len(written) > 1 and written[0] in _QUOTES and written[0] == written[-1]:
        return written[1:-1].replace('\\"', '"')
    return written
