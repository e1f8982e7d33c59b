"""Files that were parsed for an answer are stored in the index, if no build is writing it.

The transaction looks again: a build that started meanwhile reads the files itself. Nothing waits for the lock of
another writer, and an answer never fails because it could not be stored.
"""

import sqlite3
from contextlib import suppress

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.index_file import BUSY_SECONDS, IndexFile
from tsuzuki.collectors.codeindex.queries import builds, lookups
from tsuzuki.collectors.codeindex.queries import files as stored_files
from tsuzuki.collectors.codeindex.queries.names import NameIds
from tsuzuki.model.errors import Conflict, Unreachable


def store_back(index: IndexFile, files: FreshFiles, *, now_ns: int) -> int:
    """Store what was parsed and is new to the index, and that files are as they were; how many were stored."""
    parsed = [one for file in files.reread if (one := file.as_parsed_file())]
    if not parsed and not files.confirmed:
        return 0
    with suppress(Conflict, Unreachable, sqlite3.Error):
        lookups.wait_for_lock(index.connection, seconds=0)
        try:
            with index.transaction(builds.is_idle) as connection:
                stored_files.put_files(connection, parsed, names=NameIds(), now_ns=now_ns)
                for same, content in files.confirmed:
                    known = stored_files.known_file(connection, same.path)
                    if known and known.hash == content:
                        stored_files.confirm_file(connection, same, now_ns=now_ns)
        finally:
            lookups.wait_for_lock(index.connection, seconds=BUSY_SECONDS)
        return len(parsed)
    return 0
