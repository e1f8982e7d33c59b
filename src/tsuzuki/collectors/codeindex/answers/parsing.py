"""A file parsed for an answer, within the limits of a build."""

from dataclasses import dataclass

from tsuzuki.collectors.codeindex.answers.source_file import SourceFile
from tsuzuki.collectors.codeindex.extract import (
    EXTRACTOR_VERSION,
    LANGUAGES,
    Extracted,
    ExtractionFailed,
    Syntax,
    as_utf8,
    extract,
    language_of,
)
from tsuzuki.collectors.codeindex.parsing.parse import (
    HEAD_BYTES,
    ParseLimits,
    content_hash,
    longest_line,
)
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.model.clock import SystemClock

LIMITS = ParseLimits()
_CLOCK = SystemClock()


@dataclass(frozen=True, kw_only=True)
class ParsedNow:
    """What a file defines. Without an extractor for it, or beyond a limit, nothing."""

    language: str = ""
    symbols: tuple[Symbol, ...] = ()
    extracted: Extracted | None = None

    def as_parsed_file(self, path: str, source: SourceFile) -> ParsedFile | None:
        """For the index; None if there is nothing to store."""
        if self.extracted is None:
            return None
        had_errors = self.extracted.had_errors
        return ParsedFile(
            path=path,
            size=source.size,
            mtime_ns=source.mtime_ns,
            outcome=FileOutcome.SYNTAX_ERRORS if had_errors else FileOutcome.INDEXED,
            hash=content_hash(source.content),
            language=self.language,
            extractor_version=EXTRACTOR_VERSION,
            symbols=self.extracted.symbol_rows,
            references=self.extracted.reference_rows,
            words=self.extracted.words,
        )


def parse_now(path: str, content: bytes) -> ParsedNow:
    """Extract what the content has. Content that cannot be parsed has no symbols."""
    language = language_of(path, content[:HEAD_BYTES])
    if language is None or not _is_within_limits(content):
        return ParsedNow(language=language or "")
    try:
        extracted = extract(language, content, seconds_max=LIMITS.seconds_max)
    except ExtractionFailed:
        return ParsedNow(language=language)
    return ParsedNow(
        language=language,
        symbols=tuple(
            Symbol(path=path, language=language, **one._asdict()) for one in extracted.definitions
        ),
        extracted=extracted,
    )


def parse_syntax(language: str, content: bytes) -> Syntax | None:
    """The tree of a file's content; None if it cannot be parsed."""
    if language not in LANGUAGES or not _is_within_limits(content):
        return None
    try:
        text = as_utf8(content)
        return Syntax(language, text, seconds_max=LIMITS.seconds_max, clock=_CLOCK)
    except ExtractionFailed:
        return None


def _is_within_limits(content: bytes) -> bool:
    limits = LIMITS
    return (
        len(content) <= limits.file_bytes_max
        and longest_line(content, limits.line_bytes_max) <= limits.line_bytes_max
    )
