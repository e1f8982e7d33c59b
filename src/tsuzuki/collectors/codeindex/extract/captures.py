"""What the tags queries capture, as definitions and references by the offset of their name.

A query names its captures `def.<kind>` (with `name`, and where they are needed `container` and `body`), `scope.<kind>`
(with `name`: it contains others and is no definition itself), `ref.<kind>`, `words` and `fragment`. A capture whose
name starts with an underscore only filters. Patterns may overlap: of two captures at one name the more specific one
is kept.
"""

import re
from typing import NamedTuple

import tree_sitter

from tsuzuki.collectors.codeindex.extract.names import clean_name, clean_path
from tsuzuki.collectors.codeindex.extract.nesting import Found
from tsuzuki.collectors.codeindex.extract.symbols import ReferenceKind, SymbolKind

_DEFINITION_KINDS = {
    f"{role}.{kind}": (kind, role == "def") for kind in SymbolKind for role in ("def", "scope")
}
_REFERENCE_KINDS = {f"ref.{kind}": kind for kind in ReferenceKind}
_REFERENCE_RANKS = {
    ReferenceKind.INHERIT: 4,
    ReferenceKind.IMPORT: 3,
    ReferenceKind.CALL: 2,
    ReferenceKind.TYPE: 1,
    ReferenceKind.READ: 0,
}
_DEFINITION_RANKS = dict.fromkeys(SymbolKind, 4) | {
    SymbolKind.VARIABLE: 0,
    SymbolKind.FIELD: 1,
    SymbolKind.CONSTANT: 2,
    SymbolKind.OBJECT: 3,
    SymbolKind.ENUM: 5,
}
_WORDS = {"words": re.compile(rb"[^\s\"']+"), "fragment": re.compile(rb"(?<=#)[^\"']+")}

_IMPORT = ReferenceKind.IMPORT

Captured = dict[str, list[tree_sitter.Node]]


class Used(NamedTuple):
    """A reference as the query gave it."""

    kind: ReferenceKind
    name: str


def captured(
    text: bytes, matches: list[tuple[int, Captured]]
) -> tuple[dict[int, Found], dict[int, Used]]:
    found: dict[int, Found] = {}
    used: dict[int, Used] = {}
    for _, captures in matches:
        if "name" in captures:
            definition = _found(text, captures)
            known = found.get(definition.name_start)
            if definition.name and (known is None or _is_better(definition, known)):
                found[definition.name_start] = definition
            continue
        for capture, nodes in captures.items():
            kind = _REFERENCE_KINDS.get(capture)
            if kind is None:
                _add_words(used, text, capture, nodes)
                continue
            for node in nodes:
                start = node.start_byte
                known_use = used.get(start)
                if known_use is None or _REFERENCE_RANKS[kind] > _REFERENCE_RANKS[known_use.kind]:
                    name = text[start : node.end_byte].decode("utf-8", "replace")
                    if name:
                        used[start] = Used(kind, name.strip("<>") if kind is _IMPORT else name)
    return found, used


def _is_better(new: Found, known: Found) -> bool:
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
            used[word.start()] = Used(ReferenceKind.READ, word[0].decode("utf-8", "replace"))


def _found(text: bytes, captures: Captured) -> Found:
    name = captures["name"][0]
    whole, kind, listed, container, body = name, SymbolKind.VARIABLE, True, "", None
    for capture, nodes in captures.items():
        if capture in _DEFINITION_KINDS:
            whole = nodes[0]
            kind, listed = _DEFINITION_KINDS[capture]
        elif capture == "container":
            container = clean_path("/".join(_text(text, node) for node in nodes))
        elif capture == "body":
            body = nodes[0]
    body = body or whole.child_by_field_name("body")
    return Found(
        whole.start_byte,
        whole.end_byte,
        name.start_byte,
        clean_name(kind, _text(text, name)),
        kind,
        container,
        body.start_byte if body else -1,
        listed,
    )


def _text(text: bytes, node: tree_sitter.Node) -> str:
    return text[node.start_byte : node.end_byte].decode("utf-8", "replace")
