"""Workspaces that several tests share, put back after each of them as it found them.

A test begins with what its module has set up, whichever tests came before. Ids are not used again: what a process
remembers of a row must not become true of another one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_open: list["_Site"] = []


class _Site:
    """A folder with `tsuzuki.db` and perhaps `tsuzuki.yaml`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "tsuzuki.yaml"
        self._connection = sqlite3.connect(
            folder / "tsuzuki.db", isolation_level=None, check_same_thread=False
        )
        self._kept = sqlite3.connect(":memory:", check_same_thread=False)
        self._kept_version: int | None = None
        self._text: bytes | None = None

    def keep(self) -> None:
        self._text = self._file.read_bytes() if self._file.exists() else None
        if self._version() != self._kept_version:
            self._connection.backup(self._kept)
            self._kept_version = self._version()

    def put_back(self) -> None:
        if self._text is not None and self._text != self._file.read_bytes():
            self._file.write_bytes(self._text)
        if self._version() != self._kept_version:
            last_ids = self._connection.execute("SELECT seq, name FROM sqlite_sequence").fetchall()
            self._kept.backup(self._connection)
            self._connection.executemany(
                "UPDATE sqlite_sequence SET seq = ? WHERE name = ?", last_ids
            )
            self._kept_version = self._version()

    def close(self) -> None:
        self._connection.close()
        self._kept.close()

    def _version(self) -> int:
        """Version that changes with every write by another connection."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


@contextmanager
def shared_site(folder: Path) -> Iterator[None]:
    site = _Site(folder)
    _open.append(site)
    try:
        yield
    finally:
        _open.remove(site)
        site.close()


@contextmanager
def put_back_after() -> Iterator[None]:
    """Restore the state of open sites after a test."""
    sites = [*_open]
    for site in sites:
        site.keep()
    yield
    for site in sites:
        site.put_back()
