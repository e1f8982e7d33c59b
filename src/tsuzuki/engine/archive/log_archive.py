"""Where logs go when they leave the database: a folder, or an object store.

Either gives a run's lines back exactly as they were. What is written is there as a whole or not at all, and
survives a power cut once `write` has answered: only then are the rows let go.
"""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from tsuzuki.engine.archive.format import (
    missing,
    name_in,
    name_of,
    read_lines,
    unreadable,
    unwritable,
    write_lines,
)
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.store.logs import LogLine


class LogArchive(Protocol):
    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        """Keep the lines of a run and answer the ref they are found by. The same lines give the same
        ref, and writing them again changes nothing, or mends what was damaged."""

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        """The lines after `after_seq`, in order, one at a time.

        Raises `NotFound` if the log is not there, `DamagedLog` if it is not what was written,
        `Unreachable` if the archive does not answer, `ConfigurationError` for another archive's ref.
        """

    def delete(self, ref: str) -> None:
        """Forget a log. It may be gone already."""


def open_archive(location: str) -> LogArchive:
    """The archive at a path, or at the URL of an object store."""
    if "://" not in location:
        return FolderArchive(Path(location))
    try:
        from tsuzuki.engine.archive.object_store import ObjectArchive  # noqa: PLC0415 -- needs an extra
    except ModuleNotFoundError:
        raise ConfigurationError(
            "`log_archive` is an object store, but what talks to it is not installed",
            hint="Install it with: pip install 'tsuzuki[s3]'",
            code="driver_missing",
        ) from None
    return ObjectArchive(location)


class DeferredArchive:
    """An archive that is opened when it is first needed: most commands never look at a log, and must
    not fail, or wait, because of where logs go."""

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
    """A folder of files, one for each run, below a folder for each day."""

    SCHEME = "folder"
    INCOMING = ".incoming"
    """Files that are being written, apart from the others: whatever has a day is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        with self._telling():
            incoming = self._new_file(run_id)
            try:
                with incoming.open("xb") as file:
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
        with self._telling():
            if path.exists():
                path.unlink(missing_ok=True)
                _sync_folder(path.parent)

    def _new_file(self, run_id: int) -> Path:
        """A file name nobody else writes to. What a writer of this run left when it was killed goes
        now: its run is always written again."""
        folder = self._folder / self.INCOMING
        _make_folder(folder)
        for leftover in folder.glob(f"run-{run_id}-*"):
            leftover.unlink(missing_ok=True)
        return folder / f"run-{run_id}-{secrets.token_hex(6)}"

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn what the system refuses into an error that names the folder."""
        try:
            yield
        except OSError as problem:
            raise unwritable(str(self._folder), problem.strerror) from problem


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each safe on the disk before anything is put into it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
