"""Parse plain YAML line by line: a file with thousands of jobs in a tenth of the time that ruamel.yaml takes.

Plain is what most files are: `key: value` and `- value` on a line each, nested by indentation, with values that fit
on their line. An entry that is not plain (a block scalar, a value over several lines) is parsed by ruamel.yaml, from
its own lines. Where that is not certain to give the same tree, and for every error, the whole file is: the tree and
the errors never depend on which way was taken.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tsuzuki.config.yaml.nodes import (
    DEPTH_MAX,
    NODES_MAX,
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    resolve_scalar,
)
from tsuzuki.config.yaml.source import Source

EXCERPTS_MAX = 500
"""How many entries ruamel.yaml parses on their own: each has a fixed cost, a whole file has it once."""

_KEY = r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}"
_DOUBLE = r'"(?:[^"\\\n]|\\["\\nt])*"'
_SINGLE = r"'(?:[^'\n]|'')*'"
_PLAIN = (
    r"(?:[^ \n\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^ \n]))"
    r"(?:[^ \n:#]|:(?=[^ \n])|(?<! )#| +(?=[^ \n#]))*"
)
# In brackets fewer characters are plain.
_WORD = r"(?:[A-Za-z0-9_./]|-(?=[A-Za-z0-9-]))(?:[A-Za-z0-9_./@%+=$~-]|:(?=[A-Za-z0-9])| +(?=[A-Za-z0-9_./]))*"
_PART = rf"(?:{_DOUBLE}|{_SINGLE}|{_WORD})"
_LIST = rf"\[ *(?:{_PART}(?: *, *{_PART})*)? *\]"
_PAIR = rf"{_KEY}: +{_PART}"
_BRACES = rf"\{{ *(?:{_PAIR}(?: *, *{_PAIR})*)? *\}}"

_LINE = re.compile(
    rf"( *)(?:#[^\n]*|(?:({_KEY}):(?: +({_DOUBLE}|{_SINGLE}|{_LIST}|{_BRACES}|{_PLAIN}))?"
    rf"|- +({_DOUBLE}|{_SINGLE}|{_PLAIN}))?(?: +#[^\n]*)? *)(?:\n|\Z)"
)
_INDENT = re.compile(r" *")
_PARTS = re.compile(_PART)
_PAIRS = re.compile(rf"({_KEY}): +({_PART})")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
# Tabs, other line breaks, control characters, directives and the ends of documents.
_NOT_PLAIN = re.compile(
    r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
    r"|^(?:---|\.\.\.|%)",
    re.MULTILINE,
)
_KEEPS_LINES = re.compile(r"[|>][0-9]?\+")


def parse_tree(source: Source) -> Node:
    """Parse the one document in `source`; an empty one is null. Raises `ConfigurationError`."""
    tree = None if _NOT_PLAIN.search(source.text) else _plain_tree(source)
    if tree is not None:
        return tree
    from tsuzuki.config.yaml import parser  # noqa: PLC0415 -- loads ruamel.yaml; few files need it

    return parser.parse_tree(source)


class _NotPlain(Exception):
    """These lines are not plain; the entry around them may be parsed on its own."""


class _NeedsWholeFile(Exception):
    """The file has to be parsed as a whole."""


class _ContentLine(NamedTuple):
    """A line with content. `match` is None if it is not plain."""

    start: int
    indent: int
    match: re.Match[str] | None

    @property
    def is_item(self) -> bool:
        return self.match is not None and self.match.start(4) >= 0


def _plain_tree(source: Source) -> Node | None:
    """The tree, or None if the file has to be parsed as a whole."""
    try:
        return _LineParser(source).document()
    except (_NotPlain, _NeedsWholeFile):
        return None


class _LineParser:
    """A recursive descent over the lines with content. `DEPTH_MAX` bounds the recursion."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._lines = list(_content_lines(source.text))
        self._index = 0
        self._excerpts = 0

    def document(self) -> Mapping:
        if not self._lines or self._lines[0].indent or self._lines[0].is_item:
            raise _NeedsWholeFile
        root = self._mapping(0, depth=1)
        if self._next_indent >= 0 or root.size > NODES_MAX or root.height > DEPTH_MAX:
            raise _NeedsWholeFile
        return root

    @property
    def _next_indent(self) -> int:
        """The indentation of the next line; -1 at the end."""
        return self._lines[self._index].indent if self._index < len(self._lines) else -1

    def _mapping(self, indent: int, *, depth: int) -> Mapping:
        if depth > DEPTH_MAX:
            raise _NeedsWholeFile
        start = self._lines[self._index].start + indent
        entries: dict[str, Entry] = {}
        while self._next_indent == indent:
            entry = self._entry(indent, depth=depth)
            if entry.name in entries:
                raise _NeedsWholeFile
            entries[entry.name] = entry
        return _mapping_of(tuple(entries.values()), start=start)

    def _entry(self, indent: int, *, depth: int) -> Entry:
        """The entry that starts at the next line, with all lines that are indented deeper."""
        first = self._index
        with suppress(_NotPlain):
            entry = self._plain_entry(self._lines[first], depth=depth)
            if self._next_indent <= indent:
                return entry
        self._index = first
        return self._excerpt(indent)

    def _plain_entry(self, line: _ContentLine, *, depth: int) -> Entry:
        match = line.match
        if match is None or match.start(2) < 0:
            raise _NotPlain
        self._index += 1
        end = match.end(2)
        key = Scalar(value=match[2], start=match.start(2), end=end)
        value = (
            self._nested(line.indent, start_min=end + 1, depth=depth)
            if match[3] is None
            else _value(match[3], match.start(3))
        )
        return Entry(key=key, value=value, colon_end=end + 1)

    def _nested(self, indent: int, *, start_min: int, depth: int) -> Node:
        """The value on the lines below a key. A list may be indented like its key."""
        below = self._next_indent
        if below >= indent and self._lines[self._index].is_item:
            return self._sequence(below)
        if below > indent:
            return self._mapping(below, depth=depth + 1)
        return Scalar(value=None, start=start_min, end=start_min)

    def _sequence(self, indent: int) -> Sequence:
        start = self._lines[self._index].start + indent
        items: list[Node] = []
        while self._next_indent == indent and self._lines[self._index].is_item:
            match = self._lines[self._index].match
            assert match is not None  # noqa: S101 - `is_item` says so
            items.append(_scalar(match[4], match.start(4)))
            self._index += 1
        if self._next_indent > indent:
            raise _NotPlain
        return _sequence_of(tuple(items), start=start, end=items[-1].end, is_flow=False)

    def _excerpt(self, indent: int) -> Entry:
        """The entry that starts at the next line, parsed by ruamel.yaml from its own lines."""
        from tsuzuki.config.yaml import parser  # noqa: PLC0415 -- loads ruamel.yaml

        self._excerpts += 1
        start = self._lines[self._index].start
        self._index += 1
        while self._next_indent > indent or self._closes_bracket(indent):
            self._index += 1
        is_last = self._index == len(self._lines)
        end = len(self._text) if is_last else self._lines[self._index].start
        keeps_lines = _KEEPS_LINES.search(self._text, start, end)
        if keeps_lines or self._excerpts > EXCERPTS_MAX:
            raise _NeedsWholeFile
        tree = parser.parse_excerpt(self._source, start, end)
        if tree is None:
            raise _NeedsWholeFile
        if not isinstance(tree, Mapping) or tree.is_flow or tree.merged or len(tree.entries) != 1:
            raise _NotPlain
        return tree.entries[0]

    def _closes_bracket(self, indent: int) -> bool:
        """Whether the next line closes a bracket of a line above, in the column of its key."""
        if self._next_indent != indent:
            return False
        return self._text[self._lines[self._index].start + indent] in "]}"


def _content_lines(text: str) -> Iterator[_ContentLine]:
    """The lines that are not blank and not a comment."""
    position, size = 0, len(text)
    while position < size:
        match = _LINE.match(text, position)
        if match is None:
            found = _INDENT.match(text, position)
            assert found is not None  # noqa: S101 - it matches everywhere
            yield _ContentLine(position, found.end() - position, None)
            position = (text.find("\n", position) + 1) or size
            continue
        if match.start(2) >= 0 or match.start(4) >= 0:
            yield _ContentLine(position, match.end(1) - position, match)
        position = match.end()


def _value(text: str, start: int) -> Node:
    if text[0] == "[":
        parts = (_scalar(part[0], start + part.start()) for part in _PARTS.finditer(text))
        return _sequence_of(tuple(parts), start=start, end=start + len(text), is_flow=True)
    if text[0] == "{":
        return _braces(text, start)
    return _scalar(text, start)


def _braces(text: str, start: int) -> Mapping:
    entries: dict[str, Entry] = {}
    for pair in _PAIRS.finditer(text):
        key_start, key_end = start + pair.start(1), start + pair.end(1)
        if pair[1] in entries:
            raise _NeedsWholeFile
        entries[pair[1]] = Entry(
            key=Scalar(value=pair[1], start=key_start, end=key_end),
            value=_scalar(pair[2], start + pair.start(2)),
            colon_end=key_end + 1,
        )
    return _mapping_of(tuple(entries.values()), start=start, flow_end=start + len(text))


def _scalar(text: str, start: int) -> Scalar:
    end = start + len(text)
    if text[0] == '"':
        return Scalar(value=_unescaped(text[1:-1]), start=start, end=end)
    if text[0] == "'":
        return Scalar(value=text[1:-1].replace("''", "'"), start=start, end=end)
    return Scalar(value=resolve_scalar(text), start=start, end=end)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text) if "\\" in text else text


def _mapping_of(entries: tuple[Entry, ...], *, start: int, flow_end: int | None = None) -> Mapping:
    """A mapping in braces ends at `flow_end`, a block with its last entry."""
    ends = (max(entry.value.end, entry.colon_end or 0) for entry in entries)
    return Mapping(
        entries=entries,
        merged=(),
        is_flow=flow_end is not None,
        start=start,
        end=max(ends, default=start) if flow_end is None else flow_end,
        size=1 + sum(1 + entry.value.size for entry in entries),
        height=1 + max((entry.value.height for entry in entries), default=0),
    )


def _sequence_of(items: tuple[Node, ...], *, start: int, end: int, is_flow: bool) -> Sequence:
    return Sequence(
        items=items,
        is_flow=is_flow,
        start=start,
        end=end,
        size=1 + sum(item.size for item in items),
        height=1 + max((item.height for item in items), default=0),
    )
