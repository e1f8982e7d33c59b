"""The log archive: a folder, or an object store. Logs go there when they leave the database.

Both read a run's lines back exactly as they were written. A write is atomic, and durable (it survives a power
failure) once `write` has returned: only then are the rows deleted.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from tsuzuki.engine.archive.format import (
    missing,
    name_in,
    name_of,
    read_lines,
    unreadable,
    unwritable,
    write_lines,
)
from tsuzuki.model.errors import extra_missing
from tsuzuki.store.logs import LogLine


class LogArchive(Protocol):
    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        """Store the lines of a run and answer the ref to read them by. Idempotent: the same lines give the
        same ref, and writing them again changes nothing, or repairs what was damaged."""

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        """The lines after `after_seq`, in order, one at a time.

        Raises `NotFound` if the log is missing, `DamagedLog` if it is not what was written,
        `Unreachable` if the archive does not answer, `ConfigurationError` for another archive's ref.
        """

    def delete(self, ref: str) -> None:
        """Delete a log. Idempotent: it may be gone already."""


def open_archive(location: str) -> LogArchive:
    """The archive at a path, or at the URL of an object store."""
    if "://" not in location:
        return FolderArchive(Path(location))
    try:
        from tsuzuki.engine.archive.object_store import ObjectArchive  # noqa: PLC0415 -- needs an extra
    except ModuleNotFoundError:
        raise extra_missing(
            "`log_archive` is an object store, but its client library is not installed",
            extra="s3",
            code="driver_missing",
        ) from None
    return ObjectArchive(location)


class DeferredArchive:
    """An archive that is opened on first use: most commands never read a log, and must not fail or wait
    because of the archive."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._opened: LogArchive | None = None

    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        return self._archive().write(run_id, finished_at, lines)

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        return self._archive().read(ref, after_seq=after_seq)

    def delete(self, ref: str) -> None:
        self._archive().delete(ref)

    def _archive(self) -> LogArchive:
        if self._opened is None:
            self._opened = open_archive(self._location)
        return self._opened


class FolderArchive:
    """One file per run, in a folder per day."""

    SCHEME = "folder"
    INCOMING = ".incoming"
    """Folder of files that are being written: every file in the folder of a day is complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        with self._translated_errors():
            incoming = self._new_file(run_id)
            try:
                with _open_private(incoming) as file:
                    digest = write_lines(file, lines)
                    file.flush()
                    os.fsync(file.fileno())
                name = name_of(run_id, finished_at, digest)
                target = self._folder / name
                _make_folder(target.parent)
                incoming.replace(target)
            except BaseException:
                incoming.unlink(missing_ok=True)
                raise
            _sync_folder(target.parent)
        return f"{self.SCHEME}:{name}"

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        path = self._folder / name_in(ref, scheme=self.SCHEME)
        try:
            file = path.open("rb")
        except FileNotFoundError:
            raise missing(ref) from None
        except OSError as problem:
            raise unreadable(ref, problem.strerror) from problem
        with file:
            yield from read_lines(file, ref=ref, after_seq=after_seq)

    def delete(self, ref: str) -> None:
        path = self._folder / name_in(ref, scheme=self.SCHEME)
        with self._translated_errors():
            if path.exists():
                path.unlink(missing_ok=True)
                _sync_folder(path.parent)

    def _new_file(self, run_id: int) -> Path:
        """A file name that no other writer uses. Also removes what a writer of this run left when it was
        killed: that log is always written again."""
        folder = self._folder / self.INCOMING
        _make_folder(folder)
        for leftover in folder.glob(f"run-{run_id}-*"):
            leftover.unlink(missing_ok=True)
        return folder / f"run-{run_id}-{secrets.token_hex(6)}"

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn an `OSError` into an error that names the folder."""
        try:
            yield
        except OSError as problem:
            raise unwritable(str(self._folder), problem.strerror) from problem


def _open_private(path: Path) -> BinaryIO:
    """A new file that only its owner may read."""
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
    )


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents for their owner only, each durable (fsync) before anything is put into it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True, mode=0o700)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
