"""Read one file of a tree and extract its symbols and references, within limits. An error becomes the outcome of the
file."""

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tsuzuki.collectors.codeindex.extract import (
    EXTRACTOR_VERSION,
    Extracted,
    ExtractionFailed,
    ReferenceRow,
    SymbolRow,
    extract,
    language_of,
)
from tsuzuki.collectors.codeindex.moments import nanoseconds
from tsuzuki.collectors.codeindex.parsing.parsed_file import (
    FileOutcome,
    FileToParse,
    Parsed,
    ParsedFile,
    SameFile,
    VanishedFile,
)
from tsuzuki.collectors.codeindex.tree.files import open_below
from tsuzuki.model.clock import SystemClock

HEAD_BYTES = 8_192
_CLOCK = SystemClock()
_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)


@dataclass(frozen=True, kw_only=True)
class ParseLimits:
    """A file beyond one of the first two is not parsed; one beyond the third has failed."""

    file_bytes_max: int = 4_000_000
    line_bytes_max: int = 50_000
    seconds_max: float = 5.0


class HashedFile(NamedTuple):
    """The hash of a file's content, and what is stored if the index has that content."""

    hash: bytes
    same: SameFile


def parse_file(root: str, file: FileToParse, limits: ParseLimits) -> Parsed:
    """What a file has now. Never raises for what is wrong with the file."""
    try:
        descriptor = open_below(root, file.path)
    except OSError as problem:
        if problem.errno in _VANISHED:
            return VanishedFile(path=file.path)
        return _unreadable(file.path, problem)
    try:
        return _parse_open_file(descriptor, file, limits)
    except OSError as problem:
        return _unreadable(file.path, problem)
    finally:
        os.close(descriptor)


def read_content(root: Path, path: str, limits: ParseLimits) -> bytes | None:
    """The content of a file that was parsed; None if it is not there, or over the limit by now."""
    try:
        descriptor = open_below(root, path)
    except OSError:
        return None
    try:
        head = os.read(descriptor, HEAD_BYTES)
        return _whole(descriptor, head, limits.file_bytes_max)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def hash_file(root: str, path: str, limits: ParseLimits) -> HashedFile | None:
    """What a file has now, to be compared with what the index knows; None if it cannot be read."""
    try:
        descriptor = open_below(root, path)
    except OSError:
        return None
    try:
        read = _read_open_file(descriptor, path, limits)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if read is None:
        return None
    return HashedFile(
        read.hash, SameFile(path, read.status.st_size, read.status.st_mtime_ns, read.at_ns)
    )


class _Read(NamedTuple):
    """What was read of an open file, and its status from before."""

    status: os.stat_result
    at_ns: int
    language: str | None
    content: bytes | None
    """None if there is more than allowed. Of a file that is not parsed it may be only the start."""

    hash: bytes


def _read_open_file(descriptor: int, path: str, limits: ParseLimits) -> _Read | None:
    """None if it is not a regular file."""
    at_ns = nanoseconds(_CLOCK.now())
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return None
    head = os.read(descriptor, HEAD_BYTES)
    language = language_of(path, head)
    content: bytes | None = head
    if language is not None and b"\0" not in head:
        content = _whole(descriptor, head, limits.file_bytes_max)
    digest = content_hash(head if content is None else content)
    return _Read(status, at_ns, language, content, digest)


def _parse_open_file(descriptor: int, file: FileToParse, limits: ParseLimits) -> Parsed:
    read = _read_open_file(descriptor, file.path, limits)
    if read is None:
        return VanishedFile(path=file.path)
    status, language, content = read.status, read.language, read.content
    if read.hash == file.known_hash:
        return SameFile(file.path, status.st_size, status.st_mtime_ns, read.at_ns)
    outcome, error = _not_parsed(language, content, limits)
    symbols: tuple[SymbolRow, ...] = ()
    references: tuple[ReferenceRow, ...] = ()
    words: tuple[str, ...] = ()
    if outcome is None:
        outcome, error, found = _extracted(language or "", content or b"", limits)
        if found is not None:
            symbols, references, words = found.symbol_rows, found.reference_rows, found.words
    return ParsedFile(
        path=file.path,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        outcome=outcome,
        hash=read.hash,
        language=language,
        extractor_version=EXTRACTOR_VERSION,
        error=error,
        symbols=symbols,
        references=references,
        words=words,
        read_at_ns=read.at_ns,
    )


def _not_parsed(
    language: str | None, content: bytes | None, limits: ParseLimits
) -> tuple[FileOutcome | None, str | None]:
    """Why a file is not parsed, if it is not. `content` is None if there is more than allowed."""
    if content is None:
        return FileOutcome.TOO_LARGE, f"larger than {limits.file_bytes_max} bytes"
    if b"\0" in content:
        return FileOutcome.BINARY, None
    if language is None:
        return FileOutcome.NO_GRAMMAR, None
    if longest_line(content, limits.line_bytes_max) > limits.line_bytes_max:
        return FileOutcome.LONG_LINE, f"a line over {limits.line_bytes_max} bytes"
    return None, None


def content_hash(content: bytes) -> bytes:
    """How the index knows a content. Of a file that is not parsed, only the start may be hashed."""
    return hashlib.blake2b(content, digest_size=16).digest()


def _whole(descriptor: int, head: bytes, bytes_max: int) -> bytes | None:
    """The whole content; None if it is longer than allowed, even if its size was less a moment ago."""
    if len(head) < HEAD_BYTES:
        return head if len(head) <= bytes_max else None
    parts, length = [head], len(head)
    while length <= bytes_max:
        part = os.read(descriptor, bytes_max + 1 - length)
        if not part:
            return b"".join(parts)
        parts.append(part)
        length += len(part)
    return None


def longest_line(content: bytes, enough: int) -> int:
    """The length of the longest line, if it can be over `enough` at all."""
    if len(content) <= enough:
        return 0
    return max(map(len, content.split(b"\n")))


def _extracted(
    language: str, content: bytes, limits: ParseLimits
) -> tuple[FileOutcome, str | None, Extracted | None]:
    try:
        found = extract(language, content, seconds_max=limits.seconds_max)
    except ExtractionFailed as problem:
        return FileOutcome.FAILED, str(problem), None
    except (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as bug:
        return FileOutcome.FAILED, f"{type(bug).__name__}: {bug}", None
    outcome = FileOutcome.SYNTAX_ERRORS if found.had_errors else FileOutcome.INDEXED
    return outcome, None, found


def _unreadable(path: str, problem: OSError) -> ParsedFile:
    return ParsedFile(
        path=path,
        size=0,
        mtime_ns=0,
        outcome=FileOutcome.UNREADABLE,
        error=problem.strerror or str(problem),
    )
