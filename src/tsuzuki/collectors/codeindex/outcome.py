"""How the indexing of one file ended."""

from enum import StrEnum


class FileOutcome(StrEnum):
    """Kept with each file. After `unreadable` and `failed` the symbols of an earlier build stay, stale."""

    INDEXED = "indexed"
    SYNTAX_ERRORS = "syntax_errors"
    """Indexed as far as it could be parsed."""

    NO_GRAMMAR = "no_grammar"
    """No extractor knows its language."""

    BINARY = "binary"
    TOO_LARGE = "too_large"
    LONG_LINE = "long_line"
    UNREADABLE = "unreadable"
    FAILED = "failed"
    """The extractor failed, took too long or crashed."""

    @property
    def keeps_old_symbols(self) -> bool:
        return self in (FileOutcome.UNREADABLE, FileOutcome.FAILED)
