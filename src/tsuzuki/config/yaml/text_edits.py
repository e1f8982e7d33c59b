"""Edits of a YAML file as replacements in its text, so that whatever is not meant stays as it is.

A tree that is read and printed again comes out reformatted; text that is spliced does not. The
price is that some ways of writing (shared anchors, `? key`) cannot be edited. Nothing here promises
that a splice says what was meant: whoever applies splices reads the result back and compares.

A comment belongs to the block whose indentation it shares. It goes with that block, and only then.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any

from tsuzuki.config.yaml.emitter import inline, lines
from tsuzuki.config.yaml.nodes import Entry, Node
from tsuzuki.config.yaml.nodes import Mapping as MappingNode
from tsuzuki.config.yaml.source import Source
from tsuzuki.model.jsontext import encode

DEFAULT_STEP = "  "


@dataclass(frozen=True, kw_only=True)
class Splice:
    """`text` in place of what stands from `start` to `end`."""

    start: int
    end: int
    text: str = ""


class Uneditable(Exception):
    """The file says this in a way that only a person can change."""


def spliced(source: Source, splices: Iterable[Splice]) -> Source:
    """`source` with all `splices` made; they may touch but not overlap."""
    text = source.text
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end), reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return replace(source, text=text)


def set_value(source: Source, entry: Entry, value: Any) -> list[Splice]:
    """Make `entry` say `value`. A block mapping is changed key by key, so that the comments between
    the keys that stay stay too; anything else is written anew on one line."""
    node = entry.value
    if same(node.plain(), value):
        return []
    if isinstance(node, MappingNode) and isinstance(value, Mapping) and _has_in_common(node, value):
        return _set_keys(source, node, value)
    return _overwrite(source, entry, inline(value))


def insert_lines(source: Source, position: int, new_lines: list[str]) -> Splice:
    """`new_lines` in front of the line that begins at `position`, or behind the last line."""
    newline = source.newline
    text = newline.join(new_lines)
    unfinished = position > 0 and source.text[position - 1] != "\n"
    text = newline + text if unfinished else text + newline
    return Splice(start=position, end=position, text=text)


def remove_keys(source: Source, mapping: MappingNode, gone: Collection[str]) -> list[Splice]:
    """Take the keys that are `gone` out of `mapping`, with their values and the comments inside."""
    if mapping.is_flow:
        return _remove_from_flow(mapping, gone)
    return [
        Splice(start=source.line_start(entry.key.start), end=entry_block_end(source, entry))
        for entry in mapping.entries
        if entry.name in gone
    ]


def insert_into_flow(source: Source, mapping: MappingNode, added: Mapping[str, Any]) -> Splice:
    """Add keys to a mapping in braces, behind those it has."""
    text = inline(added)[1:-1]
    if mapping.entries:
        position = _entry_end(mapping.entries[-1])
        return Splice(start=position, end=position, text=f", {text}")
    position = source.text.index("{", mapping.start) + 1
    return Splice(start=position, end=position, text=f"{text}, " if mapping.merged else text)


def entry_block_end(source: Source, entry: Entry) -> int:
    """Where the lines of `entry` end, and with them the comments indented deeper than its key."""
    return _extent(source, _entry_end(entry), deeper_than=source.column(entry.key.start))


def mapping_block_end(source: Source, mapping: MappingNode) -> int:
    """Where the lines of a block mapping end, and with them the comments indented like its keys."""
    column = source.column(mapping.entries[0].key.start)
    return _extent(source, mapping.end, deeper_than=column - 1)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1, 1.0 and true are three things, order is none."""
    return encode(one) == encode(other)


def _set_keys(source: Source, mapping: MappingNode, value: Mapping[str, Any]) -> list[Splice]:
    splices: list[Splice] = []
    added: dict[str, Any] = {}
    for key, part in value.items():
        entry = mapping.own(key)
        if entry is not None:
            splices += set_value(source, entry, part)
        elif not _inherits(mapping, key, part):
            added[key] = part
    if added:
        splices.append(_insert_keys(source, mapping, added))
    gone = {entry.name for entry in mapping.entries} - set(value)
    return splices + remove_keys(source, mapping, gone)


def _has_in_common(mapping: MappingNode, value: Mapping[str, Any]) -> bool:
    """Whether there is anything to keep. A block without a common key keeps its comments."""
    if not mapping.is_flow:
        return bool(value and mapping.entries)
    return any(entry.name in value for entry in mapping.entries)


def _inherits(mapping: MappingNode, key: str, value: Any) -> bool:
    entry = mapping.entry(key)
    return entry is not None and same(entry.value.plain(), value)


def _insert_keys(source: Source, mapping: MappingNode, added: Mapping[str, Any]) -> Splice:
    if mapping.is_flow:
        return insert_into_flow(source, mapping, added)
    indent = " " * source.column(mapping.entries[0].key.start)
    parts = (lines(key, part, indent=indent, step=DEFAULT_STEP) for key, part in added.items())
    return insert_lines(source, mapping_block_end(source, mapping), list(chain(*parts)))


def _remove_from_flow(mapping: MappingNode, gone: Collection[str]) -> list[Splice]:
    """Each run of neighbours goes together with the comma that sets it off from what stays."""
    entries = mapping.entries
    splices: list[Splice] = []
    for is_gone, run in groupby(range(len(entries)), lambda index: entries[index].name in gone):
        members = list(run)
        first, last = members[0], members[-1]
        if not is_gone:
            continue
        if last + 1 < len(entries):
            splices.append(Splice(start=entries[first].key.start, end=entries[last + 1].key.start))
        else:
            start = _entry_end(entries[first - 1]) if first else entries[first].key.start
            splices.append(Splice(start=start, end=_entry_end(entries[last])))
    return splices


def _overwrite(source: Source, entry: Entry, text: str) -> list[Splice]:
    node = entry.value
    colon_end = _colon_end(entry)
    if source.line_start(node.start) == source.line_start(colon_end):
        space = "" if source.text[node.start - 1].isspace() else " "
        return [Splice(start=node.start, end=node.end, text=space + text)]
    return [
        Splice(start=colon_end, end=colon_end, text=f" {text}"),
        Splice(start=source.line_start(node.start), end=_own_line_end(source, node)),
    ]


def _own_line_end(source: Source, node: Node) -> int:
    """The end of the line on which `node` ends; only of the node if a comment follows it."""
    line_end = source.line_end(node.end)
    return node.end if source.text[node.end : line_end].strip() else line_end


def _colon_end(entry: Entry) -> int:
    if entry.colon_end is None:
        raise Uneditable(f"`{entry.name}` is not written as `key: value`")
    return entry.colon_end


def _entry_end(entry: Entry) -> int:
    return max(entry.value.end, entry.colon_end or entry.key.end)


def _extent(source: Source, end: int, *, deeper_than: int) -> int:
    """The line end behind `end`, moved on past every comment line that is `deeper_than` a column."""
    extent = position = source.line_end(end)
    while position < len(source.text):
        line = source.line_at(position)
        content = line.lstrip(" \t")
        if content.startswith("#") and len(line) - len(content) > deeper_than:
            extent = source.line_end(position)
        elif content.strip():
            break
        position = source.line_end(position)
    return extent
