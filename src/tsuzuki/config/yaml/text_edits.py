"""Text edits: change a value of a YAML file by replacing ranges of its text.

Emitting the parsed tree again would reformat the whole file; replacing ranges keeps comments, order
and formatting. The price is that some forms (shared anchors, `? key`) cannot be edited. An edit is
not proven here: the caller parses the result and compares it with what was meant.

A comment belongs to the block whose indentation it shares, and is removed only with that block.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import chain, groupby
from typing import Any

from tsuzuki.config.yaml.emitter import emit_entry, emit_flow
from tsuzuki.config.yaml.nodes import Mapping as MappingNode
from tsuzuki.config.yaml.nodes import MappingEntry, Node, Scalar, Sequence
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.model.jsontext import encode

INDENT_STEP = "  "
_COMMENT = re.compile(r"(?<!\S)#[^\r\n]*")


@dataclass(frozen=True, kw_only=True)
class TextEdit:
    """Replace the text from `start` to `end` by `text`."""

    start: int
    end: int
    text: str = ""


class Uneditable(Exception):
    """The file is written in a form that only a person can edit safely."""


def apply_edits(source: YamlSource, edits: Iterable[TextEdit]) -> YamlSource:
    """`source` with all `edits` applied. They may touch, but not overlap."""
    text = source.text
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return replace(source, text=text)


def set_value(source: YamlSource, entry: MappingEntry, value: Any) -> list[TextEdit]:
    """Give `entry` the `value`. A block mapping is edited key by key and a block list item by item, to keep
    the comments between them; any other value is replaced in flow style."""
    node = entry.value
    if same_json(node.to_data(), value):
        return []
    if isinstance(node, MappingNode) and isinstance(value, Mapping) and _shares_keys(node, value):
        return _set_keys(source, node, value)
    if isinstance(node, Sequence) and isinstance(value, list) and _has_item_lines(source, node):
        edits = _set_items(source, entry, node, value)
        return edits or _replace_value(source, entry, emit_flow(value))
    return _replace_value(source, entry, emit_flow(value))


def insert_lines(source: YamlSource, position: int, lines: list[str]) -> TextEdit:
    """Insert `lines` before the line that begins at `position`, or at the end of the file."""
    newline = source.newline
    text = newline.join(lines)
    is_unterminated = position > 0 and source.text[position - 1] != "\n"
    text = newline + text if is_unterminated else text + newline
    return TextEdit(start=position, end=position, text=text)


def remove_keys(
    source: YamlSource, mapping: MappingNode, removed: Collection[str]
) -> list[TextEdit]:
    """Remove the keys `removed` from `mapping`, with their values and the comments inside."""
    if mapping.is_flow:
        return _remove_from_flow(source, mapping, removed)
    return [
        TextEdit(start=source.line_start(entry.key.start), end=entry_block_end(source, entry))
        for entry in mapping.entries
        if entry.name in removed
    ]


def insert_into_flow(
    source: YamlSource, mapping: MappingNode, added: Mapping[str, Any]
) -> TextEdit:
    """Add keys at the end of a flow mapping (`{…}`)."""
    text = emit_flow(added)[1:-1]
    if mapping.entries:
        position = _entry_end(mapping.entries[-1])
        return TextEdit(start=position, end=position, text=f", {text}")
    position = source.text.index("{", mapping.start) + 1
    return TextEdit(start=position, end=position, text=f"{text}, " if mapping.merged else text)


def entry_block_end(source: YamlSource, entry: MappingEntry) -> int:
    """The end of the lines of `entry`, with the comments indented deeper than its key."""
    return _block_end(source, _entry_end(entry), deeper_than=source.column(entry.key.start))


def mapping_block_end(source: YamlSource, mapping: MappingNode) -> int:
    """The end of the lines of a block mapping, with the comments indented like its keys."""
    return _block_end(source, mapping.end, deeper_than=_key_column(source, mapping) - 1)


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1, 1.0 and true differ, the order of keys does not."""
    return encode(one) == encode(other)


def _set_keys(source: YamlSource, mapping: MappingNode, value: Mapping[str, Any]) -> list[TextEdit]:
    edits: list[TextEdit] = []
    added: dict[str, Any] = {}
    for key, part in value.items():
        entry = mapping.own_entry(key)
        if entry is not None:
            edits += set_value(source, entry, part)
        elif not _is_merged(mapping, key, part):
            added[key] = part
    if added:
        edits.append(_insert_keys(source, mapping, added))
    removed = {entry.name for entry in mapping.entries} - set(value)
    return edits + remove_keys(source, mapping, removed)


def _shares_keys(mapping: MappingNode, value: Mapping[str, Any]) -> bool:
    """Whether to edit `mapping` key by key. A block is, even without a common key, to keep its
    comments."""
    if not mapping.is_flow:
        return bool(value and (mapping.entries or mapping.merged))
    return any(entry.name in value for entry in mapping.entries)


def _is_merged(mapping: MappingNode, key: str, value: Any) -> bool:
    """Whether `mapping` has `key` with this `value` through `<<`."""
    entry = mapping.entry(key)
    return entry is not None and same_json(entry.value.to_data(), value)


def _insert_keys(source: YamlSource, mapping: MappingNode, added: Mapping[str, Any]) -> TextEdit:
    if mapping.is_flow:
        return insert_into_flow(source, mapping, added)
    indent = " " * _key_column(source, mapping)
    parts = (emit_entry(key, part, indent=indent, step=INDENT_STEP) for key, part in added.items())
    return insert_lines(source, mapping_block_end(source, mapping), list(chain(*parts)))


def _key_column(source: YamlSource, mapping: MappingNode) -> int:
    """The column of the keys of a block mapping; if all it has is `<<`, that is where it starts."""
    return source.column(mapping.entries[0].key.start if mapping.entries else mapping.start)


def _has_item_lines(source: YamlSource, sequence: Sequence) -> bool:
    """Whether each item begins on a line of its own, behind its dash."""
    starts = [source.text[source.line_start(item.start) : item.start] for item in sequence.items]
    return bool(starts) and not sequence.is_flow and all(one.strip() == "-" for one in starts)


def _set_items(
    source: YamlSource, entry: MappingEntry, sequence: Sequence, value: list[Any]
) -> list[TextEdit]:
    """Keep the lines of the items that stay; remove, insert and move the others. No edits if none would be left."""
    if not value or entry.colon_end is None:
        return []
    first_line = source.line_at(sequence.items[0].start)
    indent = first_line[: first_line.index("-")]
    starts = [source.line_start(item.start) for item in sequence.items]
    ends = [_block_end(source, item.end, deeper_than=len(indent)) for item in sequence.items]
    old, new = [encode(item.to_data()) for item in sequence.items], list(map(encode, value))
    changes = [
        change
        for change in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
    removed = [index for _, start, end, *_ in changes for index in range(start, end)]
    moved = {old[index]: source.text[starts[index] : ends[index]].rstrip() for index in removed}
    edits = [TextEdit(start=starts[index], end=ends[index]) for index in removed]
    for _, start, end, new_start, new_end in changes:
        lines = [
            moved.get(new[index], f"{indent}- {emit_flow(value[index])}")
            for index in range(new_start, new_end)
        ]
        if start < end:
            text = "".join(line + source.newline for line in lines)
            edits[removed.index(start)] = replace(edits[removed.index(start)], text=text)
        else:
            # A comment above an item stays above it.
            position = ends[start - 1] if start else source.line_end(entry.colon_end)
            edits.append(insert_lines(source, position, lines))
    return edits


def _remove_from_flow(
    source: YamlSource, mapping: MappingNode, removed: Collection[str]
) -> list[TextEdit]:
    """Remove each run of neighbours together with the comma that separates it from the rest, and leave the
    comments about the rest."""
    entries = mapping.entries
    edits: list[TextEdit] = []
    for is_removed, run in groupby(
        range(len(entries)), lambda index: entries[index].name in removed
    ):
        members = list(run)
        first, last = members[0], members[-1]
        if not is_removed:
            continue
        start, end = entries[first].key.start, _entry_end(entries[last])
        if last + 1 < len(entries):
            own_line, _, below = source.text[end : entries[last + 1].key.start].partition("\n")
            keeps_below = _COMMENT.search(below) is not None
            end = end + len(own_line.rstrip("\r")) if keeps_below else entries[last + 1].key.start
        elif first and not _COMMENT.search(source.text, _entry_end(entries[first - 1]), start):
            start = _entry_end(entries[first - 1])
        edits.append(TextEdit(start=start, end=end))
    return edits


def _replace_value(source: YamlSource, entry: MappingEntry, text: str) -> list[TextEdit]:
    node = entry.value
    if entry.colon_end is None:
        raise Uneditable(f"`{entry.name}` is not written as `key: value`")
    if source.line_start(node.start) == source.line_start(entry.colon_end):
        space = "" if source.text[node.start - 1].isspace() else " "
        return [
            *_kept_comments(source, entry),
            TextEdit(start=node.start, end=node.end, text=space + text),
        ]
    return [
        *_kept_comments(source, entry),
        TextEdit(start=entry.colon_end, end=entry.colon_end, text=f" {text}"),
        TextEdit(start=source.line_start(node.start), end=_own_line_end(source, node)),
    ]


def _kept_comments(source: YamlSource, entry: MappingEntry) -> list[TextEdit]:
    """The comments inside a flow value that is replaced, each on a line above its key."""
    node = entry.value
    if isinstance(node, Scalar) or not getattr(node, "is_flow", False):
        return []
    texts = [*_scalar_ranges(node)]
    comments = [
        match[0]
        for match in _COMMENT.finditer(source.text, node.start, node.end)
        if not any(start <= match.start() < end for start, end in texts)
    ]
    line = source.line_at(entry.key.start)
    indent = line[: len(line) - len(line.lstrip(" "))]
    lines = [indent + comment.rstrip() for comment in comments]
    return [insert_lines(source, source.line_start(entry.key.start), lines)] if lines else []


def _scalar_ranges(node: Node) -> Iterator[tuple[int, int]]:
    match node:
        case Scalar():
            yield node.start, node.end
        case Sequence():
            for item in node.items:
                yield from _scalar_ranges(item)
        case MappingNode():
            for entry in node.entries:
                yield entry.key.start, entry.key.end
                yield from _scalar_ranges(entry.value)


def _own_line_end(source: YamlSource, node: Node) -> int:
    """The end of the line on which `node` ends; only of the node if a comment follows it."""
    line_end = source.line_end(node.end)
    return node.end if source.text[node.end : line_end].strip() else line_end


def _entry_end(entry: MappingEntry) -> int:
    return max(entry.value.end, entry.colon_end or entry.key.end)


def _block_end(source: YamlSource, end: int, *, deeper_than: int) -> int:
    """The end of the line that contains `end`, or of the last comment line that follows it and is
    indented `deeper_than` a column."""
    block_end = position = source.line_end(end)
    while position < len(source.text):
        line = source.line_at(position)
        content = line.lstrip(" \t")
        if content.startswith("#") and len(line) - len(content) > deeper_than:
            block_end = source.line_end(position)
        elif content.strip():
            break
        position = source.line_end(position)
    return block_end
