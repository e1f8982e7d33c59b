"""Files with their symbols and references."""

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from tsuzuki.collectors.codeindex.outcome import FileOutcome
from tsuzuki.collectors.codeindex.parsed_file import ParsedFile, SameFile
from tsuzuki.collectors.codeindex.queries.names import NameIds


class KnownFile(NamedTuple):
    """What the index has of a file, to see whether it changed: the columns of `_KNOWN`."""

    id: int
    path: str
    size: int
    mtime_ns: int
    hash: bytes | None
    language: str | None
    extractor: str | None
    extractor_version: int | None
    outcome: FileOutcome
    indexed_at_ns: int


_KNOWN = (
    "SELECT id, path, size, mtime_ns, hash, language, extractor, extractor_version, outcome,"
    " indexed_at_ns FROM files"
)


def known_files(connection: sqlite3.Connection) -> dict[str, KnownFile]:
    """All of them by path."""
    return {row[1]: _known(row) for row in connection.execute(_KNOWN)}


def known_file(connection: sqlite3.Connection, path: str) -> KnownFile | None:
    row = connection.execute(f"{_KNOWN} WHERE path = ?", (path,)).fetchone()
    return _known(row) if row else None


def _known(row: Any) -> KnownFile:
    found = KnownFile._make(row)
    return found._replace(outcome=FileOutcome(found.outcome))


def put_files(
    connection: sqlite3.Connection, batch: Sequence[ParsedFile], *, names: NameIds, now_ns: int
) -> None:
    """Store files in place of what the index had of them. Where one could not be read or parsed, its old
    symbols stay."""
    names.define(connection, {row[0] for file in batch for row in file.symbols})
    ids = names.of(connection, {row[0] for file in batch for row in file.references})
    for file in batch:
        was_known = known_file(connection, file.path) is not None
        number = _put_row(connection, file, now_ns)
        if file.outcome.keeps_old_symbols:
            continue
        if was_known:
            _remove_found(connection, [(number,)])
        connection.executemany(
            "INSERT INTO symbols"
            " (file_id, name, kind, container, line, end_line, col, signature, doc)"
            f" VALUES ({number}, ?, ?, ?, ?, ?, ?, ?, ?)",
            file.symbols,
        )
        connection.executemany(
            "INSERT OR IGNORE INTO refs (file_id, name_id, kind, line, col, container)"
            f" VALUES ({number}, ?, ?, ?, ?, ?)",
            [(ids[row[0]], *row[1:]) for row in file.references],
        )


def put_file(
    connection: sqlite3.Connection, file: ParsedFile, *, names: NameIds, now_ns: int
) -> None:
    """The same for one file."""
    put_files(connection, [file], names=names, now_ns=now_ns)


def _remove_found(connection: sqlite3.Connection, file_ids: Sequence[tuple[int]]) -> None:
    """Remove the symbols and references of files."""
    connection.executemany("DELETE FROM symbols WHERE file_id = ?", file_ids)
    connection.executemany("DELETE FROM refs WHERE file_id = ?", file_ids)


def _put_row(connection: sqlite3.Connection, file: ParsedFile, now_ns: int) -> int:
    """The file's own row; its id."""
    row = connection.execute(
        "INSERT INTO files (path, size, mtime_ns, hash, language, extractor, extractor_version,"
        " outcome, error, indexed_at_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,"
        " hash = excluded.hash, language = excluded.language, extractor = excluded.extractor,"
        " extractor_version = excluded.extractor_version, outcome = excluded.outcome,"
        " error = excluded.error, indexed_at_ns = excluded.indexed_at_ns RETURNING id",
        (
            file.path,
            file.size,
            file.mtime_ns,
            file.hash,
            file.language,
            file.extractor if file.extractor_version is not None else None,
            file.extractor_version,
            file.outcome,
            file.error,
            now_ns,
        ),
    ).fetchone()
    return int(row[0])


def confirm_file(connection: sqlite3.Connection, file: SameFile, *, now_ns: int) -> None:
    """Store size and mtime of a file whose content is as it was."""
    connection.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, indexed_at_ns = ? WHERE path = ?",
        (file.size, file.mtime_ns, now_ns, file.path),
    )


def remove_files(connection: sqlite3.Connection, paths: Collection[str]) -> int:
    """Remove files with their symbols and references; how many there were."""
    found = [known_file(connection, path) for path in paths]
    file_ids = [(file.id,) for file in found if file is not None]
    _remove_found(connection, file_ids)
    connection.executemany("DELETE FROM files WHERE id = ?", file_ids)
    return len(file_ids)


def symbol_count(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM symbols").fetchone()
    return int(count)


def counts_by(connection: sqlite3.Connection, column: str) -> dict[str, int]:
    """How many files there are of each `outcome`, `language` or `extractor`, most first."""
    if column not in ("outcome", "language", "extractor"):
        raise ValueError(f"files are not counted by {column!r}")
    rows = connection.execute(
        f"SELECT {column}, count(*) FROM files WHERE {column} IS NOT NULL"
        f" GROUP BY {column} ORDER BY count(*) DESC, {column}"
    )
    return dict(rows.fetchall())


def problems(connection: sqlite3.Connection, *, limit: int) -> list[dict[str, str]]:
    """The files that could not be read or parsed, by path."""
    rows = connection.execute(
        "SELECT path, outcome, error FROM files"
        " WHERE outcome IN ('unreadable', 'failed') ORDER BY path LIMIT ?",
        (limit,),
    )
    return [{"path": path, "outcome": outcome, "error": error} for path, outcome, error in rows]
