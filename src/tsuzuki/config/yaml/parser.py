"""Parse YAML text into a tree of nodes, in one pass over the events of libyaml.

Limits bound the cost of a hostile file: the depth of nesting, and the number of nodes with every
alias counted as its target. Tags are refused, so parsing creates only text, numbers, booleans, null,
lists and mappings. A duplicate key is an error beside the tree, which has the first one.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from tsuzuki.config.yaml.nodes import (
    DEPTH_MAX,
    NODES_MAX,
    Alias,
    Mapping,
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    dereference,
    resolve_scalar,
)
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.config.yaml.syntax_errors import syntax_error
from tsuzuki.model.errors import ConfigurationError

_COLON = re.compile(r"[ \t]*:")
_DASH = re.compile(r"(?:\s|#[^\n]*\n)*-")


class ParsedTree(NamedTuple):
    """`duplicates` are the errors of keys that are given twice: `root` has only the first of each."""

    root: Node
    duplicates: tuple[ConfigurationError, ...]


def parse_tree(source: YamlSource) -> ParsedTree:
    """Parse the one document in `source`; an empty one is null. Raises `ConfigurationError`."""
    parser = _Parser(source)
    try:
        return ParsedTree(parser.document(), tuple(parser.duplicates))
    except yaml.YAMLError as problem:
        raise syntax_error(problem, source) from None


def _start(event: Event) -> int:
    assert event.start_mark is not None  # noqa: S101 - libyaml places every event
    return event.start_mark.index


def _end(event: Event) -> int:
    assert event.end_mark is not None  # noqa: S101 - libyaml places every event
    return event.end_mark.index


class _Parser:
    """A recursive descent over the events. `DEPTH_MAX` bounds the recursion."""

    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self._events: Iterator[Event] = yaml.parse(source.text, Loader=yaml.CSafeLoader)
        self._anchors: dict[str, Node | None] = {}
        self._count = 0
        self.duplicates: list[ConfigurationError] = []

    def document(self) -> Node:
        self._expect(StreamStartEvent)
        event = next(self._events)
        if not isinstance(event, DocumentStartEvent):
            return Scalar(value=None, start=0, end=0)
        self._refuse_directives(event)
        root = self._node(next(self._events), depth=0, start_min=0)
        self._expect(DocumentEndEvent)
        after = next(self._events)
        if not isinstance(after, StreamEndEvent):
            raise self._error(
                after,
                "a second document begins here",
                "Put everything in one document: remove this '---'.",
            )
        return root

    def _node(self, event: Event, *, depth: int, start_min: int) -> Node:
        """Parse the node that begins with `event`. An absent value is placed at `start_min`."""
        if isinstance(event, AliasEvent):
            return self._alias(event, depth=depth)
        self._refuse_tag(event)
        self._count_nodes(event, size=1, depth=depth)
        anchor = getattr(event, "anchor", None)
        if anchor is None:
            return self._content(event, depth=depth, start_min=start_min)
        self._anchors[anchor] = None
        node = self._anchors[anchor] = self._content(event, depth=depth, start_min=start_min)
        return node

    def _content(self, event: Event, *, depth: int, start_min: int) -> Node:
        match event:
            case MappingStartEvent():
                return self._mapping(event, depth=depth + 1)
            case SequenceStartEvent():
                return self._sequence(event, depth=depth + 1)
            case ScalarEvent():
                return self._scalar(event, start_min=start_min)
            case _:
                raise self._error(event, "invalid YAML", "Check the lines above it.")

    def _alias(self, event: AliasEvent, *, depth: int) -> Alias:
        name = str(event.anchor)
        target = self._anchors.get(name)
        if target is None:
            inside = name in self._anchors
            raise self._error(
                event,
                f"`*{name}` "
                + ("refers to a value that contains it" if inside else "refers to nothing"),
                f"Mark the value it refers to with `&{name}` above this line.",
            )
        self._count_nodes(event, size=target.size, depth=depth + target.height)
        return Alias(target=target, start=_start(event), end=_end(event))

    def _scalar(self, event: ScalarEvent, *, start_min: int) -> Scalar:
        start, end = _start(event), _end(event)
        if not event.style and start == end:
            # libyaml reports an absent value where the next token begins.
            return Scalar(value=None, start=start_min, end=start_min)
        if event.style in ("|", ">"):
            end = self._block_scalar_end(start, end)
        value = resolve_scalar(event.value) if not event.style else event.value
        return Scalar(value=value, start=start, end=end)

    def _block_scalar_end(self, start: int, end: int) -> int:
        """The end of a block scalar. Trailing blank lines belong to it only with the indicator `+`."""
        text = self._source.text
        header = text[start : self._source.line_end(start)]
        if "+" in header.split("#")[0]:
            return max(start, end - 1)
        return start + len(text[start:end].rstrip())

    def _sequence(self, event: SequenceStartEvent, *, depth: int) -> Sequence:
        items: list[Node] = []
        end = _start(event)
        while not isinstance(following := next(self._events), SequenceEndEvent):
            dash = _DASH.match(self._source.text, end)
            items.append(self._node(following, depth=depth, start_min=dash.end() if dash else end))
            end = max(end, items[-1].end)
        is_flow = bool(event.flow_style)
        return Sequence(
            items=tuple(items),
            is_flow=is_flow,
            start=_start(event),
            end=_end(following) if is_flow else end,
            size=1 + sum(item.size for item in items),
            height=1 + max((item.height for item in items), default=0),
        )

    def _mapping(self, event: MappingStartEvent, *, depth: int) -> Mapping:
        entries: dict[str, MappingEntry] = {}
        merged: list[Mapping] = []
        values: list[Node] = []
        end = _start(event)
        while not isinstance(following := next(self._events), MappingEndEvent):
            entry = self._entry(following, depth=depth)
            if self._source.text[entry.key.start : entry.key.end] == "<<":
                merged.extend(self._merge(entry))
            elif entry.name in entries:
                self.duplicates.append(self._duplicate(entries[entry.name], entry))
            else:
                entries[entry.name] = entry
            values.append(entry.value)
            end = max(end, entry.value.end, entry.colon_end or 0)
        is_flow = bool(event.flow_style)
        return Mapping(
            entries=tuple(entries.values()),
            merged=tuple(merged),
            is_flow=is_flow,
            start=_start(event),
            end=_end(following) if is_flow else end,
            size=1 + sum(1 + value.size for value in values),
            height=1 + max((value.height for value in values), default=0),
        )

    def _entry(self, event: Event, *, depth: int) -> MappingEntry:
        self._refuse_tag(event)
        start, end = _start(event), _end(event)
        if not isinstance(event, ScalarEvent) or event.anchor is not None or start == end:
            raise self._error(
                event, "this value cannot be a key", "A key is plain text followed by a colon."
            )
        self._count_nodes(event, size=1, depth=depth)
        colon = _COLON.match(self._source.text, end)
        colon_end = colon.end() if colon else None
        # Keys are always text: a job may be called `2024` or `null`.
        return MappingEntry(
            key=Scalar(value=event.value, start=start, end=end),
            value=self._node(next(self._events), depth=depth, start_min=colon_end or end),
            colon_end=colon_end,
        )

    def _merge(self, entry: MappingEntry) -> list[Mapping]:
        value = dereference(entry.value)
        candidates = value.items if isinstance(value, Sequence) else (value,)
        mappings = [dereference(candidate) for candidate in candidates]
        wanted = [mapping for mapping in mappings if isinstance(mapping, Mapping)]
        if len(wanted) < len(mappings):
            raise self._source.error(
                entry.value.start,
                "`<<` requires a mapping or a list of mappings",
                hint="Refer to a mapping marked with `&name`: `<<: *name`.",
                code="yaml",
            )
        return wanted

    def _count_nodes(self, event: Event, *, size: int, depth: int) -> None:
        self._count += size
        if self._count > NODES_MAX:
            raise self._error(
                event,
                f"the file has more than {NODES_MAX:,} values, counting aliases in full",
                "Keep data out of the configuration file.",
            )
        if depth > DEPTH_MAX:
            raise self._error(
                event,
                f"values are nested more than {DEPTH_MAX} levels deep",
                "Flatten the structure.",
            )

    def _refuse_tag(self, event: Event) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise self._error(
                event,
                "tags like `!name` are not supported",
                "Remove the tag. To make a value text, quote it.",
            )

    def _refuse_directives(self, event: DocumentStartEvent) -> None:
        if event.tags or event.version not in (None, (1, 2)):
            raise self._error(
                event,
                "directives above '---' are not supported",
                "Remove the line that begins with '%'; files are YAML 1.2.",
            )

    def _duplicate(self, first: MappingEntry, second: MappingEntry) -> ConfigurationError:
        line = self._source.place(first.key.start).line
        return self._source.error(
            second.key.start,
            f"duplicate key `{second.name}`",
            hint=f"It is already defined in line {line}: keep one, or rename one.",
            code="duplicate_key",
        )

    def _expect(self, kind: type[Event]) -> None:
        event = next(self._events)
        assert isinstance(event, kind), event  # noqa: S101 - libyaml guarantees it

    def _error(self, event: Event, message: str, hint: str) -> ConfigurationError:
        return self._source.error(_start(event), message, hint=hint, code="yaml")
