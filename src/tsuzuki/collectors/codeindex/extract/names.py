"""Names as people write them: without quotes, marks and the ends of a heading."""

import re
from collections.abc import Callable

from tsuzuki.collectors.codeindex.extract.symbols import SymbolKind

_SEPARATORS = str.maketrans({":": "/", ".": "/", "\\": "/", "*": "", "&": "", " ": ""})
_QUOTES = "\"'"
_TYPE_ARGUMENTS = re.compile(r"<[^/]*>")
_CONVERSION = re.compile(r"(operator\s+\w[^()]*?)\s*\(.*", re.DOTALL)
"""`operator int() const`, of which the parser gives all as the name."""

_EXPORTS = re.compile(r"^(?:module/)?exports(?:/|$)")


def clean_path(written: str) -> str:
    """`a::b`, `a.b` and `a\\b` as a container path, without type arguments and JavaScript's `prototype`."""
    plain = _TYPE_ARGUMENTS.sub("", written).translate(_SEPARATORS)
    path = "/".join(part for part in plain.split("/") if part)
    return _EXPORTS.sub("", path).removesuffix("/prototype")


def _unquoted(written: str) -> str:
    if len(written) > 1 and written[0] in _QUOTES and written[0] == written[-1]:
        return written[1:-1].replace('\\"', '"')
    return written


def _one_line(written: str) -> str:
    return " ".join(written.split()).rstrip("#").rstrip()


def _method_name(written: str) -> str:
    """Without the colon of Ruby's symbols, and without what follows the type of a conversion."""
    return _CONVERSION.sub(r"\1", written.removeprefix(":") or written)


def _before_equals(written: str) -> str:
    return written.partition("=")[0]


CLEANED: dict[SymbolKind, Callable[[str], str]] = {
    SymbolKind.KEY: _unquoted,
    SymbolKind.TABLE: _unquoted,
    SymbolKind.ID: _unquoted,
    SymbolKind.HEADING: _one_line,
    SymbolKind.PROPERTY: _method_name,
    SymbolKind.METHOD: _method_name,
    SymbolKind.MACRO: _before_equals,
}
"""What makes a name of what is written; of the other kinds it is the name."""
