"""Write a file atomically, under a lock: readers see the old content or the new, never a part.

The lock file is never deleted: deleting it could let two writers in at once. A killed writer leaves
a temporary file with a fixed name, and the next writer overwrites it.
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
from tsuzuki.model.errors import Conflict, FilePlace, FileUnusable

_POLL_SECONDS = 0.02


@contextmanager
def write_lock(path: Path, *, clock: Clock, timeout_seconds: float) -> Iterator[Path]:
    """Hold the write lock of the file at `path`, and yield the file's path with links resolved.

    Raises `Conflict` if another process holds the lock for longer than `timeout_seconds`.
    """
    with _os_errors_as_unreachable(path):
        target = path.resolve()
        descriptor = os.open(
            target.with_name(f".{target.name}.lock"),
            os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o644,
        )
    try:
        _acquire(descriptor, path, clock=clock, timeout_seconds=timeout_seconds)
        yield target
    finally:
        os.close(descriptor)  # closing releases the lock


def replace_content(path: Path, content: bytes, *, expected: bytes) -> None:
    """Replace the content of the file at `path` in one step, if it still is what is `expected`.

    After a failure the file is unchanged. After a return the new content survives a power cut.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with _os_errors_as_unreachable(path):
        try:
            _write_temporary(temporary, content, like=path)
            _refuse_if_changed(path, expected)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)


def create_file(path: Path, content: bytes) -> None:
    """Create a file with `content`. Raises `Conflict` if it exists."""
    with _os_errors_as_unreachable(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            raise Conflict(
                f"{path} already exists",
                hint="The file was not changed. Move it away first, or choose another name.",
                place=FilePlace(file=str(path)),
            ) from None
        try:
            with os.fdopen(descriptor, "wb") as stream:
                _write_and_sync(stream, content)
        except BaseException:
            path.unlink()
            raise
        _sync_folder(path.parent)


def _acquire(descriptor: int, path: Path, *, clock: Clock, timeout_seconds: float) -> None:
    deadline = clock.monotonic() + timeout_seconds
    never = threading.Event()
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if clock.monotonic() >= deadline:
            raise Conflict(
                f"{path} is being edited by another process",
                hint=f"It stayed locked for {timeout_seconds:g} seconds. Try again later.",
                place=FilePlace(file=str(path)),
                retry_after_seconds=timeout_seconds,
            )
        clock.wait(never, _POLL_SECONDS)


def _refuse_if_changed(path: Path, expected: bytes) -> None:
    """Editors do not take our lock: a change that one of them saved must not be lost."""
    if read_bytes(path) != expected:
        raise Conflict(
            f"{path} was changed by another program after it was read",
            hint="Nothing was written. Try again.",
            place=FilePlace(file=str(path)),
        )


def _write_temporary(temporary: Path, content: bytes, *, like: Path) -> None:
    """Write `temporary` with the mode of the file `like`, and its owner if that is permitted."""
    with suppress(FileNotFoundError):
        temporary.unlink()
    status = like.stat()
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    with os.fdopen(descriptor, "wb") as stream:
        with suppress(PermissionError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, status.st_mode & 0o7777)
        _write_and_sync(stream, content)


def _write_and_sync(stream: BinaryIO, content: bytes) -> None:
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
def _os_errors_as_unreachable(path: Path) -> Iterator[None]:
    """Turn an `OSError` into an `FileUnusable` that names the file and the remedy."""
    try:
        yield
    except OSError as problem:
        remedy = (
            "Free some disk space"
            if problem.errno in (errno.ENOSPC, errno.EDQUOT)
            else "Check that the folder exists and is writable"
        )
        raise FileUnusable(
            f"cannot write {path}: {problem.strerror}",
            hint=f"{remedy}; the file is unchanged.",
            place=FilePlace(file=str(path)),
            code="config_unwritable",
        ) from problem
