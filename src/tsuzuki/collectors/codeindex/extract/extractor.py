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
from tsuzuki.collectors.codeindex.extract.languages import LANGUAGES, Language
from tsuzuki.collectors.codeindex.extract.nesting import Nested, containers, nested
from tsuzuki.collectors.codeindex.extract.positions import Positions
from tsuzuki.collectors.codeindex.extract.signatures import signature_of
from tsuzuki.collectors.codeindex.extract.symbols import (
    Definition,
    Extracted,
    ExtractionFailed,
    Reference,
)
from tsuzuki.model.clock import Clock, SystemClock

EXTRACTOR_VERSION = 2
"""Raised with every change of what is found: older rows are then extracted again."""

_CLOCK = SystemClock()


def extract(
    language: str, source: bytes, *, seconds_max: float, clock: Clock = _CLOCK
) -> Extracted:
    """What one file defines and refers to; raises `ExtractionFailed` where that cannot be said."""
    known = LANGUAGES.get(language)
    if known is None:
        raise ExtractionFailed("unknown language", f"there is no extractor for {language}")
    grammar = grammar_of(language)
    text = as_utf8(source)
    with parsed(grammar.language, text, seconds_max=seconds_max, clock=clock) as tree:
        matches = tree_sitter.QueryCursor(grammar.query).matches(tree.root_node)
        found, used = captured(text, matches)
        had_errors = tree.root_node.has_error
    definitions, scopes = nested(
        as_sections(text, found.values()) if language == "markdown" else found.values()
    )
    for definition in definitions:
        used.pop(definition.found.name_start, None)
    positions = Positions(text)
    offsets = sorted(used if known.all_reads else _without_locals(used, definitions))
    return Extracted(
        definitions=_definitions(known, text, definitions, positions),
        references=_references(used, offsets, containers(offsets, scopes), positions),
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


def _definitions(
    language: Language, text: bytes, nests: list[Nested], positions: Positions
) -> list[Definition]:
    definitions = []
    for found, kind, container in nests:
        line = positions.line(found.start)
        named_line, column = positions.place(found.name_start)
        if named_line != line:
            column = positions.place(found.start)[1]
        if language.name == "python" and found.body >= 0:
            doc = docs.docstring(text, found.body)
        else:
            doc = docs.comment_above(positions, found.start, language.comment)
        end_line = positions.end_line(found.start, found.end)
        signature = signature_of(text, found)
        definitions.append(
            Definition(found.name, kind, container, line, end_line, column, signature, doc)
        )
    return definitions


def _references(
    used: dict[int, Used], offsets: list[int], paths: Iterator[str], positions: Positions
) -> list[Reference]:
    references = []
    for offset, (line, column), path in zip(offsets, positions.places(offsets), paths, strict=True):
        rank, name = used[offset]
        if rank == IMPORT_RANK:
            name = name.strip("<>")
        if name:
            references.append(Reference(name, REFERENCE_RANKS[rank], line, column, path))
    return references
