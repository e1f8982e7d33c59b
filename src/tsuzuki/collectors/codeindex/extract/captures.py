"""What the tags queries capture, as definitions and references by the offset of their name.

A query names its captures `def.<kind>` (with `name`, and where they are needed `container` and `body`), `scope.<kind>`
(with `name`: it contains others and is no definition itself), `ref.<kind>`, `words` and `fragment`. A capture whose
name starts with an underscore only filters. Patterns may overlap: of two captures at one name the more specific one
is kept.
"""

import re

import tree_sitter

from tsuzuki.collectors.codeindex.extract.names import CLEANED, clean_path
from tsuzuki.collectors.codeindex.extract.nesting import FoundDefinition
from tsuzuki.collectors.codeindex.extract.symbols import ReferenceKind, SymbolKind

_DEFINITIONS = {
    f"{role}.{kind}": (kind, role == "def", CLEANED.get(kind))
    for kind in SymbolKind
    for role in ("def", "scope")
}
"""By capture: the kind, whether it is listed, and what its name is cleaned by."""

_DEFAULT = (SymbolKind.VARIABLE, True, None)
REFERENCE_RANKS = (
    ReferenceKind.READ,
    ReferenceKind.TYPE,
    ReferenceKind.CALL,
    ReferenceKind.IMPORT,
    ReferenceKind.INHERIT,
)
"""The kinds of references; the more specific one has the higher rank."""

READ_RANK = REFERENCE_RANKS.index(ReferenceKind.READ)
IMPORT_RANK = REFERENCE_RANKS.index(ReferenceKind.IMPORT)
_RANK_BY_CAPTURE = {f"ref.{kind}": rank for rank, kind in enumerate(REFERENCE_RANKS)}
_DEFINITION_RANKS = dict.fromkeys(SymbolKind, 4) | {
    SymbolKind.VARIABLE: 0,
    SymbolKind.FIELD: 1,
    SymbolKind.CONSTANT: 2,
    SymbolKind.OBJECT: 3,
    SymbolKind.ENUM: 5,
}
_WORDS = {"words": re.compile(rb"[^\s\"']+"), "fragment": re.compile(rb"(?<=#)[^\"']+")}

Captured = dict[str, list[tree_sitter.Node]]

Used = tuple[int, str]
"""A reference as the query gave it: the rank of its kind, and the name. Plain, because most captures are references."""

_VARIABLE = SymbolKind.VARIABLE


def captured(
    text: bytes, matches: list[tuple[int, Captured]]
) -> tuple[dict[int, FoundDefinition], dict[int, Used]]:
    found: dict[int, FoundDefinition] = {}
    used: dict[int, Used] = {}
    characters = text.decode("latin-1")  # each has the offset of its byte
    is_ascii = text.isascii()
    rank_of = _RANK_BY_CAPTURE.get
    for _, captures in matches:
        if "name" in captures:
            definition = _found(characters, captures, is_ascii=is_ascii)
            known = found.get(definition.name_start)
            if definition.name and (known is None or _is_better(definition, known)):
                found[definition.name_start] = definition
            continue
        for capture, nodes in captures.items():
            rank = rank_of(capture)
            if rank is None:
                _add_words(used, text, capture, nodes)
                continue
            for node in nodes:
                start = node.start_byte
                if start not in used or used[start][0] < rank:
                    used[start] = rank, characters[start : node.end_byte]
    if not is_ascii:
        used = {offset: (rank, _as_written(name)) for offset, (rank, name) in used.items()}
    return found, used


def _as_written(characters: str) -> str:
    """The text of which these are the bytes."""
    if characters.isascii():
        return characters
    return characters.encode("latin-1").decode("utf-8", "replace")


def _is_better(new: FoundDefinition, known: FoundDefinition) -> bool:
    ranks = _DEFINITION_RANKS[new.kind], _DEFINITION_RANKS[known.kind]
    return ranks[0] > ranks[1] or (ranks[0] == ranks[1] and known.body < 0 <= new.body)


def _add_words(
    used: dict[int, Used], text: bytes, capture: str, nodes: list[tree_sitter.Node]
) -> None:
    """`words`: each word is a reference (`class="a b"`); `fragment`: what follows the `#`."""
    pattern = _WORDS.get(capture)
    if pattern is None:
        return
    for node in nodes:
        for word in pattern.finditer(text, node.start_byte, node.end_byte):
            used[word.start()] = (READ_RANK, word[0].decode("latin-1"))


def _found(characters: str, captures: Captured, *, is_ascii: bool) -> FoundDefinition:
    name = captures["name"][0]
    whole, body, container = name, None, ""
    kind, listed, cleaned = _DEFAULT
    definition_of = _DEFINITIONS.get
    for capture, nodes in captures.items():
        if (definition := definition_of(capture)) is not None:
            whole = nodes[0]
            kind, listed, cleaned = definition
        elif capture == "container":
            parts = (characters[node.start_byte : node.end_byte] for node in nodes)
            container = clean_path(_as_written("/".join(parts)))
        elif capture == "body":
            body = nodes[0]
    if body is None and kind is not _VARIABLE:
        body = whole.child_by_field_name("body")
    start = name.start_byte
    written = characters[start : name.end_byte]
    if not is_ascii:
        written = _as_written(written)
    return FoundDefinition(
        whole.start_byte,
        whole.end_byte,
        start,
        cleaned(written) if cleaned else written,
        kind,
        container,
        body.start_byte if body else -1,
        listed,
    )
