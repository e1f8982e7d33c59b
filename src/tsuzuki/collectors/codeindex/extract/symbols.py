"""What an extractor finds in one file: definitions and references.

Lines count from 1 and are inclusive. Columns count characters from 0. They are found as rows of plain values, because a
build makes millions of them and sends them between processes; rows are named only where an answer is made.
"""

from enum import StrEnum
from typing import NamedTuple, TypeAlias

SIGNATURE_CHARACTERS_MAX = 300
DOC_CHARACTERS_MAX = 200


class SymbolKind(StrEnum):
    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    INTERFACE = "interface"
    TRAIT = "trait"
    STRUCT = "struct"
    UNION = "union"
    ENUM = "enum"
    MEMBER = "member"
    """One value of an enum."""
    MODULE = "module"
    NAMESPACE = "namespace"
    OBJECT = "object"
    TYPE = "type"
    CONSTANT = "constant"
    VARIABLE = "variable"
    FIELD = "field"
    PROPERTY = "property"
    MACRO = "macro"
    HEADING = "heading"
    KEY = "key"
    ID = "id"
    RULE = "rule"
    """A selector or a named rule of a style sheet."""
    TABLE = "table"
    VIEW = "view"
    INDEX = "index"
    TRIGGER = "trigger"


class ReferenceKind(StrEnum):
    CALL = "call"
    TYPE = "type"
    IMPORT = "import"
    INHERIT = "inherit"
    READ = "read"


class Definition(NamedTuple):
    name: str
    kind: SymbolKind
    container: str
    """The path of the enclosing definitions, `Outer/inner`, or empty."""
    line: int
    """Where its text starts."""
    end_line: int
    column: int
    """Of the name if it stands on that line, else of the start."""
    signature: str
    doc: str


class SymbolReference(NamedTuple):
    name: str
    kind: ReferenceKind
    line: int
    column: int
    container: str


SymbolRow: TypeAlias = tuple[str, str, str, int, int, int, str, str]
"""The fields of a `Definition`, the kind as plain text."""

ReferenceRow: TypeAlias = tuple[str, str, int, int, str]
"""The fields of a `SymbolReference`, the kind as plain text."""


class Extracted(NamedTuple):
    symbol_rows: tuple[SymbolRow, ...]
    reference_rows: tuple[ReferenceRow, ...]
    words: tuple[str, ...]
    """Every word of the text that may be an identifier, once."""
    had_errors: bool
    """True if the grammar did not understand a part of the file; what it did understand is here."""

    @property
    def definitions(self) -> list[Definition]:
        return [Definition(row[0], SymbolKind(row[1]), *row[2:]) for row in self.symbol_rows]

    @property
    def references(self) -> list[SymbolReference]:
        return [
            SymbolReference(row[0], ReferenceKind(row[1]), *row[2:]) for row in self.reference_rows
        ]


class ExtractionFailed(Exception):
    """A file gave no symbols; `reason` is a short word for the index, the message is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
