"""One writer at a time, and readers that see the old file or the new one, never half of one.

The lock file stays behind on purpose: whoever removed it could let two writers in. What a killed
writer leaves is a temporary file under a fixed name, which the next writer overwrites.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tsuzuki.config.yaml.source import read_bytes
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Conflict, Place, Unreachable

_POLL_SECONDS = 0.02


@contextmanager
def exclusive(path: Path, *, clock: Clock, timeout_seconds: float) -> Iterator[Path]:
    """Hold the writers' lock of the file that `path` leads to, and give that file's real path.

    Raises `Conflict` if somebody else holds it beyond `timeout_seconds`.
    """
    with _telling_of(path):
        target = path.resolve()
        descriptor = os.open(
            target.with_name(f".{target.name}.lock"),
            os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o644,
        )
    try:
        _wait_for(descriptor, path, clock=clock, timeout_seconds=timeout_seconds)
        yield target
    finally:
        os.close(descriptor)  # closing releases the lock


def replace_content(path: Path, content: bytes, *, expected: bytes) -> None:
    """Put `content` in place of the file at `path`, which still must hold what is `expected`.

    On any failure the file is as it was. Once this returns, a power cut does not undo it.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with _telling_of(path):
        try:
            _write_like(path, temporary, content)
            _refuse_if_changed(path, expected)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)


def create(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet. Raises `Conflict` if it does."""
    with _telling_of(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            raise Conflict(
                f"{path} already exists",
                hint="It was left as it is. Move it away first, or name another file.",
                place=Place(file=str(path)),
            ) from None
        try:
            with os.fdopen(descriptor, "wb") as stream:
                _write(stream, content)
        except BaseException:
            path.unlink()
            raise
        _sync_folder(path.parent)


def _wait_for(descriptor: int, path: Path, *, clock: Clock, timeout_seconds: float) -> None:
    deadline = clock.monotonic() + timeout_seconds
    never = threading.Event()
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if clock.monotonic() >= deadline:
            raise Conflict(
                f"{path} is being edited by another process",
                hint=f"Waited {timeout_seconds:g} seconds. Try again when that one is done.",
                place=Place(file=str(path)),
                retry_after_seconds=timeout_seconds,
            )
        clock.wait(never, _POLL_SECONDS)


def _refuse_if_changed(path: Path, expected: bytes) -> None:
    """Editors do not know our lock: what one of them saved meanwhile must not be lost."""
    if read_bytes(path) != expected:
        raise Conflict(
            f"{path} was changed by somebody else in the meantime",
            hint="Nothing was written. Try again.",
            place=Place(file=str(path)),
        )


def _write_like(path: Path, temporary: Path, content: bytes) -> None:
    """Write `temporary` to the disk with the mode, and if we may the owner, of `path`."""
    with suppress(FileNotFoundError):
        temporary.unlink()
    status = path.stat()
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    with os.fdopen(descriptor, "wb") as stream:
        with suppress(PermissionError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, status.st_mode & 0o7777)
        _write(stream, content)


def _write(stream: BinaryIO, content: bytes) -> None:
    stream.write(content)
    stream.flush()
    os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _telling_of(path: Path) -> Iterator[None]:
    """Turn what the system refuses into an error that names the file and the remedy."""
    try:
        yield
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        raise Unreachable(
            f"{path} cannot be written: {problem.strerror}",
            hint="Free some space on this disk; the file is as it was."
            if full
            else "Check that the folder exists and may be written; the file is as it was.",
            place=Place(file=str(path)),
            code="config_unwritable",
        ) from problem
