"""Definitions and references of one file: one parse, one pass of the query, one sweep for the containers.

A tags query names its captures `def.<kind>` (with `name`, and where they are needed `container` and `body`), `scope`
(with `name`: encloses others without a definition of its own) and `ref.<kind>`. Queries may overlap: of two captures
at one name the more telling one is kept.
"""

from collections.abc import Iterator
from typing import NamedTuple

import tree_sitter

from tsuzuki.collectors.codeindex.extract import docs
from tsuzuki.collectors.codeindex.extract.encoding import as_utf8
from tsuzuki.collectors.codeindex.extract.grammar import grammar_of, parse
from tsuzuki.collectors.codeindex.extract.languages import LANGUAGES, Language
from tsuzuki.collectors.codeindex.extract.nesting import VALUES, Found, Nested, containers, nested
from tsuzuki.collectors.codeindex.extract.positions import Positions
from tsuzuki.collectors.codeindex.extract.signatures import signature_of
from tsuzuki.collectors.codeindex.extract.symbols import (
    Definition,
    Extracted,
    ExtractionFailed,
    Reference,
    ReferenceKind,
    SymbolKind,
)
from tsuzuki.model.clock import Clock, SystemClock

EXTRACTOR_VERSION = 1
"""Raised with every change of what is found: older rows are then extracted again."""

_DEFINITION_KINDS = {f"def.{kind}": kind for kind in SymbolKind} | {
    f"scope.{kind}": kind for kind in SymbolKind
}
_REFERENCE_KINDS = {f"ref.{kind}": kind for kind in ReferenceKind}
_RANKS = {
    ReferenceKind.INHERIT: 4,
    ReferenceKind.IMPORT: 3,
    ReferenceKind.CALL: 2,
    ReferenceKind.TYPE: 1,
    ReferenceKind.READ: 0,
}
_SEPARATORS = str.maketrans({":": "/", ".": "/", "\\": "/", "*": "", "&": "", " ": ""})
_CLOCK = SystemClock()


class _Used(NamedTuple):
    """A reference as the query gave it."""

    kind: ReferenceKind
    name: str


def extract(
    language: str, source: bytes, *, seconds_max: float, clock: Clock = _CLOCK
) -> Extracted:
    """What one file defines and refers to; raises `ExtractionFailed` where that is nothing at all."""
    if language not in LANGUAGES:
        raise ExtractionFailed("unknown language", f"there is no extractor for {language}")
    grammar = grammar_of(language)
    text = as_utf8(source)
    tree = parse(grammar.parser, text, seconds_max=seconds_max, clock=clock)
    found, used = _collected(text, tree_sitter.QueryCursor(grammar.query).matches(tree.root_node))
    positions = Positions(text)
    nests, scopes = nested(found.values())
    for definition, _, _ in nests:
        used.pop(definition.name_start, None)
    offsets = sorted(used)
    return Extracted(
        definitions=_definitions(LANGUAGES[language], text, nests, positions),
        references=_references(used, offsets, containers(offsets, scopes), positions),
        had_errors=tree.root_node.has_error,
    )


def _collected(
    text: bytes, matches: list[tuple[int, dict[str, list[tree_sitter.Node]]]]
) -> tuple[dict[int, Found], dict[int, _Used]]:
    found: dict[int, Found] = {}
    used: dict[int, _Used] = {}
    for _, captured in matches:
        if "name" in captured:
            definition = _found(text, captured)
            known = found.get(definition.name_start)
            if known is None or known.kind in VALUES:
                found[definition.name_start] = definition
            continue
        for capture, nodes in captured.items():
            kind = _REFERENCE_KINDS[capture]
            for node in nodes:
                start = node.start_byte
                known_use = used.get(start)
                if known_use is None or _RANKS[kind] > _RANKS[known_use.kind]:
                    used[start] = _Used(
                        kind, text[start : node.end_byte].decode("utf-8", "replace")
                    )
    return found, used


def _found(text: bytes, captured: dict[str, list[tree_sitter.Node]]) -> Found:
    whole, kind, listed, container, body = None, SymbolKind.VARIABLE, True, "", None
    for capture, nodes in captured.items():
        if capture in _DEFINITION_KINDS:
            whole, kind, listed = nodes[0], _DEFINITION_KINDS[capture], capture.startswith("def.")
        elif capture == "container":
            container = _container(text[nodes[0].start_byte : nodes[-1].end_byte])
        elif capture == "body":
            body = nodes[0]
    name = captured["name"][0]
    whole = whole or name
    body = body or whole.child_by_field_name("body")
    return Found(
        whole.start_byte,
        whole.end_byte,
        name.start_byte,
        text[name.start_byte : name.end_byte].decode("utf-8", "replace"),
        kind,
        container,
        body.start_byte if body else -1,
        listed,
    )


def _container(written: bytes) -> str:
    """`a::b`, `a.b` and `a\\b` as a path."""
    parts = written.decode("utf-8", "replace").translate(_SEPARATORS).split("/")
    return "/".join(part for part in parts if part)


def _definitions(
    language: Language, text: bytes, nests: list[Nested], positions: Positions
) -> list[Definition]:
    definitions = []
    for found, kind, container in nests:
        line, column = positions.place(found.name_start)
        first = positions.line(found.start)
        if language.name == "python" and found.body >= 0:
            doc = docs.docstring(text, found.body)
        else:
            doc = docs.comment_above(positions, first, language.comment)
        definitions.append(
            Definition(
                found.name,
                kind,
                container,
                line,
                positions.end_line(found.start, found.end),
                column,
                signature_of(text, found),
                doc,
            )
        )
    return definitions


def _references(
    used: dict[int, _Used], offsets: list[int], containers_: Iterator[str], positions: Positions
) -> list[Reference]:
    return [
        Reference(used[offset].name, used[offset].kind, *positions.place(offset), container)
        for offset, container in zip(offsets, containers_, strict=True)
    ]
