"""Files as an answer may quote them: read now, compared by content with the index, parsed anew if they differ.

An answer only quotes what `FreshFiles.get` gave it, so a stored line number never meets another file's bytes. What
one answer quotes is one state of the tree: `settled` tells whether any of it was written since it was read.
"""

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from tsuzuki.collectors.codeindex.answers.parsing import ParsedNow, parse_now
from tsuzuki.collectors.codeindex.answers.source_file import (
    SourceFile,
    read_source,
    signature_of,
)
from tsuzuki.collectors.codeindex.extract import EXTRACTOR_VERSION
from tsuzuki.collectors.codeindex.parsing.parse import content_hash
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile, SameFile
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.queries.lookups import Symbol

QUOTED_BYTES_MAX = 64 * 2**20
"""Of a file that is read for its lines; whether it is parsed is for the limits of a build."""

ParsedFiles: TypeAlias = dict[tuple[str, bytes], ParsedNow]
"""What was parsed, by path and hash: the next attempt at an answer need not parse it again."""


@dataclass(frozen=True)
class FreshFile:
    """A file as it is now, with its definitions."""

    path: str
    source: SourceFile
    stored: lookups.StoredFile | None
    """The row of the index, if it was made from these very bytes by this extractor."""

    connection: sqlite3.Connection | None = field(repr=False)
    parsed_before: "ParsedFiles" = field(repr=False, default_factory=dict)

    @cached_property
    def _parsed(self) -> ParsedNow:
        key = (self.path, content_hash(self.source.content))
        if key not in self.parsed_before:
            self.parsed_before[key] = parse_now(self.path, self.source.content)
        return self.parsed_before[key]

    @property
    def was_parsed(self) -> bool:
        """Whether the index had nothing to say about these bytes."""
        return self.stored is None

    @property
    def is_parsed(self) -> bool:
        """Whether its symbols were asked for, and the index did not have them."""
        return "_parsed" in vars(self)

    @property
    def language(self) -> str:
        return (self.stored.language or "") if self.stored else self._parsed.language

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        if self.stored is None or self.connection is None:
            return self._parsed.symbols
        return tuple(lookups.symbols_of_file(self.connection, self.stored.id))

    def as_parsed_file(self) -> ParsedFile | None:
        """For the index; None if the file could not be parsed."""
        return self._parsed.as_parsed_file(self.path, self.source)


class FreshFiles:
    """The files that one answer looks at. Each is read once, so the answer has one view of it."""

    def __init__(
        self,
        root: Path,
        connection: sqlite3.Connection | None,
        parsed_before: ParsedFiles | None = None,
    ) -> None:
        self._parsed_before: ParsedFiles = {} if parsed_before is None else parsed_before
        self.root = root
        self.connection = connection
        self.confirmed: list[tuple[SameFile, bytes | None]] = []
        self._shown: Collection[str] | None = None
        self._read: dict[str, FreshFile | None] = {}
        self._signatures: dict[str, tuple[int, ...]] = {}

    def show_only(self, paths: Collection[str]) -> None:
        """Give out no other files from here on, whatever the index has."""
        self._shown = paths

    def get(self, path: str) -> FreshFile | None:
        """The file at a path below the root; None if there is no readable file that may be shown."""
        if self._shown is not None and path not in self._shown:
            return None
        if path not in self._read:
            self._read[path] = self._fresh(path)
        return self._read[path]

    def peek(self, path: str) -> FreshFile | None:
        """Like `get`, but a file that the index has as it is is not kept: it was only compared, and is noted as
        `confirmed`."""
        if path in self._read:
            return self._read[path]
        file = self.get(path)
        if file and file.stored:
            del self._read[path], self._signatures[path]
            same = SameFile(path=path, size=file.source.size, mtime_ns=file.source.mtime_ns)
            self.confirmed.append((same, file.stored.hash))
        return file

    def names_alike(self, name: str, *, limit: int) -> list[str]:
        """Names in the index that a mistyped one may mean, without those that only hidden or former files define."""
        if self.connection is None:
            return []
        found = lookups.names_alike(self.connection, name, limit=limit)
        if self._shown is None:
            return found
        defined = lookups.symbols_named(self.connection, found)
        shown = {symbol.name for symbol in defined if symbol.path in self._shown}
        return [one for one in found if one in shown]

    def all(self, paths: Iterable[str]) -> list[FreshFile]:
        """Those of the paths that are files now, in their order."""
        return [file for path in dict.fromkeys(paths) if (file := self.get(path))]

    @property
    def reread(self) -> list[FreshFile]:
        """The files that were parsed because the index did not have their symbols."""
        return [file for file in self._read.values() if file and file.is_parsed and file.language]

    def settled(self) -> bool:
        """Whether every file is still what it was when it was read."""
        return all(
            signature_of(self.root / path) == signature
            for path, signature in self._signatures.items()
        )

    def _fresh(self, path: str) -> FreshFile | None:
        signature = signature_of(self.root / path)
        source = read_source(self.root, path, bytes_max=QUOTED_BYTES_MAX) if signature else None
        self._signatures[path] = source.signature if source else signature
        if source is None:
            return None
        stored = self._stored(path, source.content)
        return FreshFile(path, source, stored, self.connection, self._parsed_before)

    def _stored(self, path: str, content: bytes) -> lookups.StoredFile | None:
        if self.connection is None:
            return None
        stored = lookups.file_at(self.connection, path)
        if stored is None or stored.hash is None or stored.hash != content_hash(content):
            return None
        is_current = stored.extractor_version in (None, EXTRACTOR_VERSION)
        is_whole = not FileOutcome(stored.outcome).keeps_old_symbols
        return stored if is_current and is_whole else None
