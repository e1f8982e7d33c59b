"""One parsed file that can be asked where a name occurs in it, and in which syntax.

An occurrence is a leaf of the tree with the text of the name that is neither a comment nor a part of a string. Its path
leads from the root to that leaf; each step knows its field in the node before. Nodes are asked for their offsets only,
never for points or text.
"""

import re
from functools import cached_property
from typing import NamedTuple

import tree_sitter

from tsuzuki.collectors.codeindex.extract.captures import (
    READ_RANK,
    REFERENCE_RANKS,
    Used,
    captured,
)
from tsuzuki.collectors.codeindex.extract.grammar import grammar_of, parsed
from tsuzuki.collectors.codeindex.extract.nesting import DefinitionScope, Nested, containers, nested
from tsuzuki.collectors.codeindex.extract.positions import Positions
from tsuzuki.collectors.codeindex.extract.symbols import ReferenceKind, SymbolReference
from tsuzuki.collectors.codeindex.languages import LANGUAGES
from tsuzuki.model.clock import Clock

_TEXT = re.compile(r"comment|string|text|fragment|content|regex|char|escape|literal|error", re.I)
"""Kinds of leaves that hold no name."""


class SyntaxStep(NamedTuple):
    """A node on the way to a leaf, and the field that it is of the node before."""

    node: tree_sitter.Node
    field: str | None


class Occurrence(NamedTuple):
    """A place in the text that has a name, with the nodes around it, the outermost first."""

    start: int
    path: tuple[SyntaxStep, ...]

    @property
    def node(self) -> tree_sitter.Node:
        return self.path[-1].node


class Syntax:
    """The tree of one text. Of one thread."""

    def __init__(self, language: str, text: bytes, *, seconds_max: float, clock: Clock) -> None:
        self.language = language
        self.text = text
        grammar = grammar_of(language)
        with parsed(grammar.language, text, seconds_max=seconds_max, clock=clock) as tree:
            self.root = tree.root_node
            matches = tree_sitter.QueryCursor(grammar.query).matches(self.root)
            found, self._used = captured(text, matches)
        self._definitions, self._scopes = nested(found.values())
        self._occurrences: dict[str, list[Occurrence]] = {}

    @cached_property
    def positions(self) -> Positions:
        return Positions(self.text)

    def written(self, node: tree_sitter.Node) -> str:
        """The text of a node."""
        return self.text[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def offset(self, line: int, column: int) -> int:
        """Of a line, counted from 1, and a column in characters."""
        before = self.positions.line_text(line).decode("utf-8", "replace")[:column]
        return self.positions.line_start(line) + len(before.encode())

    def path_to(self, start: int) -> tuple[SyntaxStep, ...]:
        """The nodes around a byte, the outermost first."""
        cursor = self.root.walk()
        path = [SyntaxStep(self.root, None)]
        while cursor.goto_first_child_for_byte(start) is not None:
            node = cursor.node
            if node is None or node.start_byte > start:
                break
            path.append(SyntaxStep(node, cursor.field_name))
        return tuple(path)

    def occurrences(self, name: str) -> list[Occurrence]:
        """Where identifiers are the name, in the order of the text."""
        if name not in self._occurrences:
            self._occurrences[name] = self._find(name)
        return self._occurrences[name]

    def _find(self, name: str) -> list[Occurrence]:
        if not LANGUAGES[self.language].has_identifiers:
            return []
        wanted = name.encode()
        pattern = re.compile(rb"(?<![\w$\x80-\xff])" + re.escape(wanted) + rb"(?![\w$\x80-\xff])")
        found = []
        for match in pattern.finditer(self.text):
            path = self.path_to(match.start())
            leaf = path[-1].node
            is_whole = (leaf.start_byte, leaf.end_byte) == match.span()
            if is_whole and leaf.is_named and not _TEXT.search(leaf.type):
                found.append(Occurrence(match.start(), path))
        return found

    def uses(self, name: str) -> list[SymbolReference]:
        """Every use of the name: its occurrences, and what the tags query takes for a use, but no definition."""
        used: dict[int, Used] = {one.start: (READ_RANK, name) for one in self.occurrences(name)}
        used |= {at: use for at, use in self._used.items() if use[1].strip("<>") == name}
        for definition in self._definitions:
            used.pop(definition.found.name_start, None)
        offsets = sorted(used)
        following = containers(self._scopes)
        container, container_end = "", 0
        uses = []
        for offset, (line, column) in zip(offsets, self.positions.places(offsets), strict=True):
            while offset >= container_end:
                container_end, container = next(following)
            kind = ReferenceKind(REFERENCE_RANKS[used[offset][0]])
            uses.append(SymbolReference(name, kind, line, column, container))
        return uses

    _definitions: list[Nested]
    _scopes: list[DefinitionScope]
