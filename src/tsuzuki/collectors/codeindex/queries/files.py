"""Files with their symbols and the names that they mention."""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile, SameFile
from tsuzuki.collectors.codeindex.queries.bulk_insert import insert_rows
from tsuzuki.collectors.codeindex.queries.names import NameIds

NEVER_COMPARED_NS = 0
"""When a file was indexed that was copied from another tree's index and not compared with ours so far."""


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


def known_page(connection: sqlite3.Connection, *, after: str, limit: int) -> list[KnownFile]:
    """Files by path, from behind `after` on."""
    rows = connection.execute(f"{_KNOWN} WHERE path > ? ORDER BY path LIMIT ?", (after, limit))
    return [_known(row) for row in rows]


def indexed_among(connection: sqlite3.Connection, paths: Iterable[str]) -> set[str]:
    """Those of the paths that the index has."""
    return {*_ids_of(connection, paths)}


def known_file(connection: sqlite3.Connection, path: str) -> KnownFile | None:
    row = connection.execute(f"{_KNOWN} WHERE path = ?", (path,)).fetchone()
    return _known(row) if row else None


_OUTCOMES = {outcome.value: outcome for outcome in FileOutcome}


def known_below(connection: sqlite3.Connection, paths: Iterable[str]) -> dict[str, KnownFile]:
    """Those that are one of the paths, or lie below one."""
    found = {}
    for path in paths:
        rows = connection.execute(
            f"{_KNOWN} WHERE path = ? OR (path > ? AND path < ?)",
            (path, f"{path}/", f"{path}0"),  # 0 is the character behind the slash
        )
        found.update({row[1]: _known(row) for row in rows})
    return found


def _known(row: Any) -> KnownFile:
    return KnownFile._make((*row[:8], _OUTCOMES[row[8]], row[9]))


def put_files(
    connection: sqlite3.Connection, batch: Sequence[ParsedFile], *, names: NameIds, now_ns: int
) -> None:
    """Store files in place of what the index had of them. Where one could not be read or parsed, its old
    symbols stay, if they were this tree's."""
    by_path = {file.path: file for file in batch}
    _remove_copied(connection, [one.path for one in batch if one.outcome.keeps_old_symbols])
    known = _ids_of(connection, by_path)
    connection.executemany(_PUT, [_row(file, now_ns) for file in by_path.values()])
    ids = _ids_of(connection, by_path)
    changed = [file for file in by_path.values() if not file.outcome.keeps_old_symbols]
    _remove_found(connection, [(known[file.path],) for file in changed if file.path in known])
    names.define(connection, {row[0] for file in changed for row in file.symbols})
    insert_rows(
        connection,
        _INTO_SYMBOLS,
        9,
        [(ids[file.path], *row) for file in changed for row in file.symbols],
    )
    mentioned = {file.path: _mentioned(file) for file in changed}
    name_ids = names.of(connection, {name for uses in mentioned.values() for name in uses})
    insert_rows(
        connection,
        _INTO_MENTIONS,
        3,
        [
            (ids[path], number, count)
            for path, uses in mentioned.items()
            for number, count in sorted((name_ids[name], count) for name, count in uses.items())
        ],
    )


def _mentioned(file: ParsedFile) -> dict[str, int]:
    """Every name that may occur in a file, and how often the tags query took it for a use."""
    return {**dict.fromkeys(file.words, 0), **Counter(row[0] for row in file.references)}


def put_file(
    connection: sqlite3.Connection, file: ParsedFile, *, names: NameIds, now_ns: int
) -> None:
    """The same for one file."""
    put_files(connection, [file], names=names, now_ns=now_ns)


def _remove_found(connection: sqlite3.Connection, file_ids: Sequence[tuple[int]]) -> None:
    """Remove the symbols and mentions of files."""
    connection.executemany("DELETE FROM symbols WHERE file_id = ?", file_ids)
    connection.executemany("DELETE FROM mentions WHERE file_id = ?", file_ids)


def _remove_copied(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Remove what was copied for files and never compared with them."""
    copied = f"(SELECT id FROM files WHERE path = ? AND indexed_at_ns = {NEVER_COMPARED_NS})"
    for table in ("symbols", "mentions"):
        rows = [(path,) for path in paths]
        connection.executemany(f"DELETE FROM {table} WHERE file_id IN {copied}", rows)


_PUT = (
    "INSERT INTO files (path, size, mtime_ns, hash, language, extractor, extractor_version,"
    " outcome, error, indexed_at_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,"
    " hash = excluded.hash, language = excluded.language, extractor = excluded.extractor,"
    " extractor_version = excluded.extractor_version, outcome = excluded.outcome,"
    " error = excluded.error, indexed_at_ns = excluded.indexed_at_ns"
)


_INTO_SYMBOLS = (
    "INSERT INTO symbols (file_id, name, kind, container, line, end_line, col, signature, doc)"
)
_INTO_MENTIONS = "INSERT INTO mentions (file_id, name_id, uses)"


def _row(file: ParsedFile, now_ns: int) -> tuple[Any, ...]:
    """The values of `_PUT`."""
    return (
        file.path,
        file.size,
        file.mtime_ns,
        file.hash,
        file.language,
        file.extractor if file.extractor_version is not None else None,
        file.extractor_version,
        file.outcome,
        file.error,
        file.read_at_ns or now_ns,
    )


def _ids_of(connection: sqlite3.Connection, paths: Iterable[str]) -> dict[str, int]:
    """The ids of those files that the index has."""
    rows = connection.execute(
        "SELECT path, id FROM files WHERE path IN (SELECT value FROM json_each(?))",
        (json.dumps([*paths]),),
    )
    return dict(rows.fetchall())


def confirm_files(connection: sqlite3.Connection, same: Iterable[SameFile], *, now_ns: int) -> None:
    """Store size and mtime of files whose content is as it was."""
    connection.executemany(
        "UPDATE files SET size = ?, mtime_ns = ?, indexed_at_ns = ? WHERE path = ?",
        [(one.size, one.mtime_ns, one.read_at_ns or now_ns, one.path) for one in same],
    )


def remove_files(connection: sqlite3.Connection, paths: Collection[str]) -> int:
    """Remove files with their symbols and mentions; how many there were."""
    found = [known_file(connection, path) for path in paths]
    file_ids = [(file.id,) for file in found if file is not None]
    _remove_found(connection, file_ids)
    connection.executemany("DELETE FROM files WHERE id = ?", file_ids)
    return len(file_ids)


def file_count(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM files").fetchone()
    return int(count)


def symbol_count(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM symbols").fetchone()
    return int(count)


class FileCounts(NamedTuple):
    """How many files there are of each outcome, language and extractor, most first."""

    outcomes: dict[str, int]
    languages: dict[str, int]
    extractors: dict[str, int]


def counts(connection: sqlite3.Connection) -> FileCounts:
    """In one pass: it is asked for while a build runs."""
    outcomes: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    extractors: Counter[str] = Counter()
    rows = connection.execute(
        "SELECT outcome, language, extractor, count(*) FROM files"
        " GROUP BY outcome, language, extractor"
    )
    for outcome, language, extractor, number in rows:
        outcomes[outcome] += number
        if language is not None:
            languages[language] += number
        if extractor is not None:
            extractors[extractor] += number
    return FileCounts(_most_first(outcomes), _most_first(languages), _most_first(extractors))


def _most_first(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def problems(connection: sqlite3.Connection, *, limit: int) -> list[dict[str, str]]:
    """The files that could not be read or parsed, by path."""
    rows = connection.execute(
        "SELECT path, outcome, error FROM files"
        " WHERE outcome IN ('unreadable', 'failed') ORDER BY path LIMIT ?",
        (limit,),
    )
    return [{"path": path, "outcome": outcome, "error": error} for path, outcome, error in rows]


class ListedFile(NamedTuple):
    """A file of the index. `error` says why it could not be read or parsed."""

    path: str
    language: str | None
    outcome: str
    size: int
    error: str | None


def listed(
    connection: sqlite3.Connection,
    *,
    outcome: str | None,
    language: str | None,
    after: str | None,
    limit: int,
) -> list[ListedFile]:
    """The files with an outcome and a language, if these are given, by path from behind `after` on."""
    rows = connection.execute(
        "SELECT path, language, outcome, size, error FROM files"
        " WHERE (?1 IS NULL OR outcome = ?1) AND (?2 IS NULL OR language = ?2)"
        " AND (?3 IS NULL OR path > ?3) ORDER BY path LIMIT ?4",
        (outcome, language, after, limit),
    )
    return [ListedFile(*row) for row in rows]
