"""Definitions and references of one file: one parse, one pass of the query, one sweep for the containers."""

from collections.abc import Iterator

import tree_sitter

from tsuzuki.collectors.codeindex.extract import docs
from tsuzuki.collectors.codeindex.extract.captures import (
    IMPORT_RANK,
    READ_RANK,
    REFERENCE_RANKS,
    Used,
    captured,
)
from tsuzuki.collectors.codeindex.extract.encoding import as_utf8
from tsuzuki.collectors.codeindex.extract.grammar import grammar_of, parsed
from tsuzuki.collectors.codeindex.extract.headings import as_sections
from tsuzuki.collectors.codeindex.extract.nesting import DefinitionScope, Nested, containers, nested
from tsuzuki.collectors.codeindex.extract.positions import Positions
from tsuzuki.collectors.codeindex.extract.signatures import signature_of
from tsuzuki.collectors.codeindex.extract.symbols import (
    Extracted,
    ExtractionFailed,
    ReferenceRow,
    SymbolKind,
    SymbolRow,
)
from tsuzuki.collectors.codeindex.extract.words import words_of
from tsuzuki.collectors.codeindex.languages import LANGUAGES, Language
from tsuzuki.model.clock import Clock, SystemClock

EXTRACTOR_VERSION = 3
"""Raised with every change of what is found: older rows are then extracted again."""

_CLOCK = SystemClock()
_SYMBOL_TEXTS: dict[SymbolKind, str] = {kind: kind.value for kind in SymbolKind}
"""Kinds as plain text. Their own `value` is slow to ask for."""

_REFERENCE_TEXTS = tuple(kind.value for kind in REFERENCE_RANKS)


def extract(
    language: str, source: bytes, *, seconds_max: float, clock: Clock = _CLOCK
) -> Extracted:
    """What one file defines and refers to; raises `ExtractionFailed` where that cannot be said."""
    known = LANGUAGES.get(language)
    if known is None:
        raise ExtractionFailed("unknown language", f"no extractor for {language}")
    grammar = grammar_of(language)
    text = as_utf8(source)
    with parsed(grammar.language, text, seconds_max=seconds_max, clock=clock) as tree:
        matches = tree_sitter.QueryCursor(grammar.query).matches(tree.root_node)
        found, used = captured(text, matches)
        had_errors = tree.root_node.has_error
    definitions, scopes = nested(
        as_sections(text, found.values()) if language == "markdown" else found.values()
    )
    for definition, _, _ in definitions:
        used.pop(definition.name_start, None)
    positions = Positions(text)
    offsets = sorted(used if known.all_reads else _without_locals(used, definitions))
    return Extracted(
        symbol_rows=tuple(_symbol_rows(known, text, definitions, positions)),
        reference_rows=tuple(_reference_rows(used, offsets, scopes, positions)),
        words=words_of(known, text),
        had_errors=had_errors,
    )


def _without_locals(used: dict[int, Used], definitions: list[Nested]) -> list[int]:
    """Without the reads of local variables: a name that is read is defined or imported in the file, or a type's."""
    names = {definition.found.name for definition in definitions}
    names.update(name for rank, name in used.values() if rank == IMPORT_RANK)
    return [
        offset
        for offset, (rank, name) in used.items()
        if rank != READ_RANK or name in names or name[:1].isupper()
    ]


def _symbol_rows(
    language: Language, text: bytes, nests: list[Nested], positions: Positions
) -> Iterator[SymbolRow]:
    has_docstrings, comment = language.name == "python", language.comment
    place = positions.place
    for found, kind, container in nests:
        start, end, name_start, name, _, _, body, _ = found
        line, column = place(name_start)
        if positions.line_start(line) > start or (
            name_start < start and positions.line(start) != line
        ):
            line, column = place(start)
        if has_docstrings and body >= 0:
            doc = docs.docstring(text, body)
        else:
            doc = docs.comment_above(positions, start, line, comment)
        end_line = positions.end_line(start, end)
        signature = signature_of(text, found)
        yield name, _SYMBOL_TEXTS[kind], container, line, end_line, column, signature, doc


def _reference_rows(
    used: dict[int, Used], offsets: list[int], scopes: list[DefinitionScope], positions: Positions
) -> Iterator[ReferenceRow]:
    container, container_end, following = "", 0, containers(scopes)
    for offset, (line, column) in zip(offsets, positions.places(offsets), strict=True):
        while offset >= container_end:
            container_end, container = next(following)
        rank, name = used[offset]
        if rank == IMPORT_RANK:
            name = name.strip("<>")
        if name:
            yield name, _REFERENCE_TEXTS[rank], line, column, container
