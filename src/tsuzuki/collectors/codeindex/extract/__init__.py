"""Definitions and references of one source file, from tree-sitter and the tags queries beside this module."""

from tsuzuki.collectors.codeindex.extract.encoding import as_utf8
from tsuzuki.collectors.codeindex.extract.extractor import EXTRACTOR_VERSION, extract
from tsuzuki.collectors.codeindex.extract.symbols import (
    Definition,
    Extracted,
    ExtractionFailed,
    ReferenceKind,
    ReferenceRow,
    SymbolKind,
    SymbolReference,
    SymbolRow,
)
from tsuzuki.collectors.codeindex.extract.syntax import Occurrence, Syntax, SyntaxStep
from tsuzuki.collectors.codeindex.languages import LANGUAGES, Language, language_of

__all__ = [
    "EXTRACTOR_VERSION",
    "LANGUAGES",
    "Definition",
    "Extracted",
    "ExtractionFailed",
    "Language",
    "Occurrence",
    "ReferenceKind",
    "ReferenceRow",
    "SymbolKind",
    "SymbolReference",
    "SymbolRow",
    "Syntax",
    "SyntaxStep",
    "as_utf8",
    "extract",
    "language_of",
]
