"""Files that were parsed for an answer are stored in the index, if no build is writing it.

The transaction looks again: a build that started meanwhile reads the files itself. Nothing waits for the lock of
another writer, and an answer never fails because it could not be stored.
"""

import sqlite3
from collections.abc import Collection
from contextlib import suppress

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.index_file import BUSY_SECONDS, IndexFile
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile
from tsuzuki.collectors.codeindex.queries import builds, lookups
from tsuzuki.collectors.codeindex.queries import files as stored_files
from tsuzuki.collectors.codeindex.queries.names import NameIds
from tsuzuki.model.errors import Conflict, Unreachable


def store_back(index: IndexFile, files: FreshFiles, *, listed: Collection[str], now_ns: int) -> int:
    """Store what was parsed and is new to the index, and that files are as they were; how many were stored. A file
    that is not listed, such as an ignored one that a caller named, is not stored."""
    parsed = [
        one for file in files.reread if file.path in listed and (one := file.as_parsed_file())
    ]
    if not parsed and not files.confirmed:
        return 0
    with suppress(Conflict, Unreachable, sqlite3.Error):
        lookups.wait_for_lock(index.connection, seconds=0)
        try:
            with index.transaction(builds.is_idle) as connection:
                new = [one for one in parsed if not _has_failed(connection, one)]
                stored_files.put_files(connection, new, names=NameIds(), now_ns=now_ns)
                for same, content in files.confirmed:
                    known = stored_files.known_file(connection, same.path)
                    if known and known.hash == content:
                        stored_files.confirm_files(connection, [same], now_ns=now_ns)
        finally:
            lookups.wait_for_lock(index.connection, seconds=BUSY_SECONDS)
        return len(new)
    return 0


def _has_failed(connection: sqlite3.Connection, parsed: ParsedFile) -> bool:
    """Whether a language server failed on these very bytes: the reason stays until the next build tries again."""
    known = stored_files.known_file(connection, parsed.path)
    return known is not None and known.outcome is FileOutcome.FAILED and known.hash == parsed.hash
