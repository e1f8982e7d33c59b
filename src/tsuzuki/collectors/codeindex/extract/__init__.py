"""Definitions and references of one source file, from tree-sitter and the tags queries beside this module."""

from tsuzuki.collectors.codeindex.extract.encoding import as_utf8
from tsuzuki.collectors.codeindex.extract.extractor import EXTRACTOR_VERSION, extract
from tsuzuki.collectors.codeindex.extract.symbols import (
    Definition,
    Extracted,
    ExtractionFailed,
    Reference,
    ReferenceKind,
    ReferenceRow,
    SymbolKind,
    SymbolRow,
)
from tsuzuki.collectors.codeindex.extract.syntax import Occurrence, Step, Syntax
from tsuzuki.collectors.codeindex.languages import LANGUAGES, Language, language_of

__all__ = [
    "EXTRACTOR_VERSION",
    "LANGUAGES",
    "Definition",
    "Extracted",
    "ExtractionFailed",
    "Language",
    "Occurrence",
    "Reference",
    "ReferenceKind",
    "ReferenceRow",
    "Step",
    "SymbolKind",
    "SymbolRow",
    "Syntax",
    "as_utf8",
    "extract",
    "language_of",
]
