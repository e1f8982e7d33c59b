"""The answer to `textDocument/documentSymbol` as definitions of the index.

Nested and flat answers are understood. Where the parser found the same definition, its kind, signature and doc are
used: a server has fewer kinds. Imports, parameters and local variables, which some servers list, are no definitions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tsuzuki.collectors.codeindex.extract.nesting import (
    CALLABLES,
    LOCALS,
    ONCE,
    TYPES,
)
from tsuzuki.collectors.codeindex.extract.symbols import (
    SIGNATURE_CHARACTERS_MAX,
    ReferenceRow,
    SymbolKind,
    SymbolRow,
)

SYMBOLS_MAX = 200_000
DEPTH_MAX = 100
NAME_CHARACTERS_MAX = 500
TYPE_PARAMETER = 26
DATA_LANGUAGES = frozenset({"json", "yaml", "toml"})
"""Languages whose definitions are keys, of any kind of value."""

_KINDS = {
    1: SymbolKind.MODULE,
    2: SymbolKind.MODULE,
    3: SymbolKind.NAMESPACE,
    4: SymbolKind.MODULE,
    5: SymbolKind.CLASS,
    6: SymbolKind.METHOD,
    7: SymbolKind.PROPERTY,
    8: SymbolKind.FIELD,
    9: SymbolKind.METHOD,
    10: SymbolKind.ENUM,
    11: SymbolKind.INTERFACE,
    12: SymbolKind.FUNCTION,
    13: SymbolKind.VARIABLE,
    14: SymbolKind.CONSTANT,
    15: SymbolKind.HEADING,
    16: SymbolKind.CONSTANT,
    17: SymbolKind.CONSTANT,
    18: SymbolKind.VARIABLE,
    19: SymbolKind.OBJECT,
    20: SymbolKind.KEY,
    21: SymbolKind.CONSTANT,
    22: SymbolKind.MEMBER,
    23: SymbolKind.STRUCT,
    24: SymbolKind.FIELD,
    25: SymbolKind.METHOD,
}
"""The kinds of the protocol. `String` (15) is what servers use for headings."""


class InvalidAnswer(Exception):
    """The answer is not what the protocol allows, or speaks of places that the file does not have."""


class SymbolPlace(NamedTuple):
    """Line and column from 0, the column in characters."""

    line: int
    column: int


class SymbolItem(NamedTuple):
    """One symbol of an answer."""

    name: str
    kind: int
    start: SymbolPlace
    end: SymbolPlace
    name_start: SymbolPlace
    container: str


class Parsed(NamedTuple):
    """What the parser found in the same text."""

    language: str
    lines: Sequence[str]
    symbols: Sequence[SymbolRow]
    references: Sequence[ReferenceRow]


def as_symbols(answer: Any, parsed: Parsed, *, encoding: str) -> tuple[SymbolRow, ...]:
    """The definitions of an answer, by line. Raises `InvalidAnswer`."""
    if answer is None:
        if parsed.symbols:
            raise InvalidAnswer(
                f"returned nothing for a file in which the parser finds {len(parsed.symbols)} "
                "definitions"
            )
        return ()
    if not isinstance(answer, list):
        raise InvalidAnswer(f"returned {type(answer).__name__} instead of a list")
    reader = _Reader(parsed.lines, encoding)
    is_flat = any(isinstance(one, dict) and "location" in one for one in answer)
    items = _nested_flat([*reader.flat(answer)]) if is_flat else reader.nested(answer, "", 0)
    rows = _Rows(parsed)
    for item in items:
        rows.add(item)
        if len(rows.found) > SYMBOLS_MAX:
            raise InvalidAnswer(f"returned more than {SYMBOLS_MAX} symbols")
    rows.add_macros()
    return tuple(sorted(rows.found, key=lambda row: (row[3], -row[4], row[5])))


class _Reader:
    """Reads the parts of an answer, and checks them against the text."""

    def __init__(self, lines: Sequence[str], encoding: str) -> None:
        self._lines = lines
        self._encoding = encoding

    def nested(self, symbols: list[Any], container: str, depth: int) -> Iterator[SymbolItem]:
        if depth > DEPTH_MAX:
            raise InvalidAnswer(f"nested symbols more than {DEPTH_MAX} levels deep")
        for symbol in symbols:
            fields = _fields(symbol)
            start, end = self._range(fields.get("range"))
            name_start, _ = self._range(fields.get("selectionRange"))
            name, kind = fields["name"], fields["kind"]
            if not start <= name_start <= end:
                raise InvalidAnswer(f"returned a name outside of its symbol {name!r}")
            yield SymbolItem(name, kind, start, end, name_start, container)
            children = fields.get("children") or []
            if not isinstance(children, list):
                raise InvalidAnswer(f"returned children of {name!r} that are not a list")
            yield from self.nested(children, joined(container, name), depth + 1)

    def flat(self, symbols: list[Any]) -> Iterator[SymbolItem]:
        for symbol in symbols:
            fields = _fields(symbol)
            location = fields.get("location")
            start, end = self._range(location.get("range") if isinstance(location, dict) else None)
            name = fields["name"]
            column = self._lines[start.line].find(name, start.column)
            name_start = SymbolPlace(start.line, column if column >= 0 else start.column)
            container = fields.get("containerName")
            yield SymbolItem(
                name,
                fields["kind"],
                start,
                end,
                name_start,
                container if isinstance(container, str) else "",
            )

    def _range(self, value: Any) -> tuple[SymbolPlace, SymbolPlace]:
        if not isinstance(value, dict):
            raise InvalidAnswer("returned a symbol without a range")
        start, end = self._place(value.get("start")), self._place(value.get("end"))
        if end < start:
            raise InvalidAnswer(
                f"returned a range that ends before it starts, in line {start.line + 1}"
            )
        return start, end

    def _place(self, value: Any) -> SymbolPlace:
        line = value.get("line") if isinstance(value, dict) else None
        units = value.get("character") if isinstance(value, dict) else None
        if type(line) is not int or type(units) is not int or line < 0 or units < 0:
            raise InvalidAnswer("returned a range without lines and columns")
        if line == len(self._lines) and units == 0:  # the end of a text that ends with a line
            return SymbolPlace(line - 1, len(self._lines[-1]))
        if line >= len(self._lines):
            raise InvalidAnswer(f"returned line {line + 1} of a file with {len(self._lines)} lines")
        return SymbolPlace(line, column_of(self._lines[line], units, self._encoding))


def column_of(line: str, units: int, encoding: str) -> int:
    """The column in characters. Beyond the end of a line is its end, as the protocol says."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    width = 1 if encoding == "utf-8" else 2
    coded = line.encode("utf-8" if encoding == "utf-8" else "utf-16-le", "surrogatepass")
    return len(coded[: units * width].decode("utf-8" if width == 1 else "utf-16-le", "ignore"))


def _fields(symbol: Any) -> Mapping[str, Any]:
    if not isinstance(symbol, dict):
        raise InvalidAnswer("returned a symbol that is not an object")
    name, kind = symbol.get("name"), symbol.get("kind")
    if not isinstance(name, str) or type(kind) is not int:
        raise InvalidAnswer("returned a symbol without name and kind")
    if len(name) > NAME_CHARACTERS_MAX:
        raise InvalidAnswer(f"returned a name of {len(name)} characters")
    return {**symbol, "name": name.strip()}


def _written(place: SymbolPlace) -> tuple[int, int]:
    """A place as the index has it: lines count from 1."""
    return place.line + 1, place.column


def _nested_flat(items: list[SymbolItem]) -> Iterator[SymbolItem]:
    """A flat answer with the containers that the ranges show. Where they show none, the server's own is used."""
    open_items: list[tuple[SymbolItem, str]] = []
    for item in sorted(items, key=lambda one: (one.start, (-one.end.line, -one.end.column))):
        while open_items and not _holds(open_items[-1][0], item):
            open_items.pop()
        container = open_items[-1][1] if open_items else item.container
        yield item._replace(container=container)
        open_items.append((item, joined(container, item.name)))


def _holds(outer: SymbolItem, inner: SymbolItem) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end and outer[2:4] != inner[2:4]


def joined(outer: str, inner: str) -> str:
    """A container path. What has no name, such as `(anonymous enum)`, is no part of it."""
    if not is_name(inner):
        return outer
    path = plain_name(inner).replace("::", "/")
    return f"{outer}/{path}" if outer else path


def is_name(name: str) -> bool:
    return bool(name) and name[0] not in "(<["


def plain_name(name: str) -> str:
    """Without the parameters that some servers write behind it. `operator()` is a name."""
    if name.endswith(")") and not name.startswith("operator"):
        return name.partition("(")[0].strip() or name
    return name


class _Rows:
    """Rows of symbols, from the items of one answer."""

    def __init__(self, parsed: Parsed) -> None:
        self.found: list[SymbolRow] = []
        self._parsed = parsed
        self._known: dict[tuple[str, int], list[SymbolRow]] = {}
        for row in parsed.symbols:
            self._known.setdefault((row[0], row[3]), []).append(row)
        self._imports = {(row[2], row[3]) for row in parsed.references if row[1] == "import"}
        self._kinds: dict[str, SymbolKind] = {}
        self._values: set[tuple[str, str]] = set()

    def add(self, item: SymbolItem) -> None:
        if not is_name(item.name) or item.kind == TYPE_PARAMETER:
            return
        path = joined(item.container, item.name)
        container, _, name = path.rpartition("/")
        if (
            "/" in item.name and "::" not in item.name
        ):  # a slash of its own: in a key, or `operator/`
            container, name = item.container, plain_name(item.name)
        known = self._known_row(item, name)
        kind = SymbolKind(known[1]) if known else self._kind(item.kind, container, name)
        if known is None and _written(item.name_start) in self._imports:
            return
        if known is None and kind in LOCALS and self._kinds.get(container) in CALLABLES:
            return
        if kind in ONCE:
            if (container, name) in self._values:
                return
            self._values.add((container, name))
        self._kinds[path] = kind
        self.found.append(self._row(item, container, name, kind, known))

    def _known_row(self, item: SymbolItem, name: str) -> SymbolRow | None:
        """The parser's row of the same definition. A class and its constructor may share name and line."""
        rows = self._known.get((name, item.name_start.line + 1)) or self._known.get(
            (name, item.start.line + 1), []
        )
        is_callable = _KINDS.get(item.kind) in CALLABLES
        alike = [row for row in rows if (row[1] in CALLABLES) is is_callable]
        exact = [row for row in rows if row[5] == item.name_start.column]
        return next(iter([*exact, *alike, *rows]), None)

    def add_macros(self) -> None:
        """The protocol has no kind for macros: servers do not list them."""
        listed = {(row[0], row[3]) for row in self.found}
        self.found += (
            row
            for row in self._parsed.symbols
            if row[1] == SymbolKind.MACRO and (row[0], row[3]) not in listed
        )

    def _row(
        self, item: SymbolItem, container: str, name: str, kind: SymbolKind, known: SymbolRow | None
    ) -> SymbolRow:
        line, end_line = item.start.line + 1, max(item.end.line, item.start.line) + 1
        column = item.name_start.column if item.name_start.line == item.start.line else None
        if (
            known and end_line == line
        ):  # some servers give the name alone as the range of a variable
            end_line = max(end_line, known[4])
        text = self._parsed.lines[item.start.line].strip()[:SIGNATURE_CHARACTERS_MAX]
        return (
            name,
            kind.value,
            container,
            line,
            end_line,
            item.start.column if column is None else column,
            known[6] if known else text.rstrip(" {:="),
            known[7] if known else "",
        )

    def _kind(self, number: int, container: str, name: str) -> SymbolKind:
        if self._parsed.language in DATA_LANGUAGES:
            return SymbolKind.KEY
        kind = _KINDS.get(number, SymbolKind.VARIABLE)
        outer = self._kinds.get(container)
        if kind is SymbolKind.ENUM and outer is SymbolKind.ENUM:
            return SymbolKind.MEMBER
        if kind is SymbolKind.FUNCTION and outer in TYPES:
            return SymbolKind.METHOD
        if kind is SymbolKind.VARIABLE:
            if len(name) > 1 and name.isupper():
                return SymbolKind.CONSTANT
            return SymbolKind.FIELD if outer in TYPES else SymbolKind.VARIABLE
        return kind
