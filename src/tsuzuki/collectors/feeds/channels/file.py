"""A file of JSON lines: one line for each post, edit and reply, on the disk before it counts as sent.

Writers lock the file. A line that a crash cut off is taken away by the next writer; what another program left
there without an end of line stays.
"""

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from tsuzuki.collectors.feeds.channels.protocol import (
    AccountStopped,
    Outgoing,
    OwnPost,
    PostLimits,
    Sent,
)
from tsuzuki.outward.errors import SourceUnavailable

OWN_START = b'{"id":"'
TAIL_BYTES = 64 * 1024


class FileChannel:
    """One file. For one thread at a time; other processes may write to it too."""

    can_look_up = True
    is_idempotent = True

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_limits(self) -> PostLimits:
        return PostLimits()

    def check_access(self) -> str:
        folder = self._path.parent
        if not (
            os.access(folder, os.W_OK)
            and (not self._path.exists() or os.access(self._path, os.W_OK))
        ):
            raise AccountStopped(f"cannot write {self._path}", hint="Change the account's `path`.")
        return f"{self._path} is writable"

    def send(self, post: Outgoing) -> Sent:
        with self._locked() as file:
            if not _holds(file, post.key):
                _append(file, _line(post))
        return Sent(remote_id=post.key)

    def look_up(self, post: Outgoing, *, others: Collection[str]) -> Sent | None:  # noqa: ARG002 - the protocol's
        with self._locked() as file:
            return Sent(remote_id=post.key) if _holds(file, post.key) else None

    def own_posts(self, *, since: datetime) -> Iterator[OwnPost]:
        if not self._path.exists():
            return
        try:
            with self._path.open("rb", buffering=0) as file:
                for line in _lines(file):
                    if line.startswith(OWN_START) and _is_json(line):
                        said = json.loads(line)
                        if datetime.fromisoformat(said["created_at"]) >= since:
                            yield OwnPost(remote_id=said["id"], links=(said["url"],))
        except OSError as problem:
            raise SourceUnavailable(f"cannot read {self._path}: {problem.strerror}") from None

    def close(self) -> None:
        """Nothing is open between two calls."""

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file, locked, its last line whole."""
        try:
            is_new = not self._path.exists()
            with self._path.open("a+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                _mend(file)
                yield file
            if is_new:
                _flush_folder(self._path.parent)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as no:
            raise AccountStopped(
                f"cannot write {self._path}: {no.strerror}",
                hint="Check the account's `path`: its folder must exist and be writable.",
            ) from None
        except OSError as problem:
            raise SourceUnavailable(f"cannot write {self._path}: {problem.strerror}") from None


def _line(post: Outgoing) -> bytes:
    said = {
        "id": post.key,
        "kind": post.kind.value,
        "created_at": post.created_at.isoformat(),
        **post.body.as_dict(),
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _append(file: BinaryIO, line: bytes) -> None:
    """All of the line or nothing of it."""
    size = file.seek(0, os.SEEK_END)
    try:
        left = memoryview(line)
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        file.truncate(size)
        raise


def _holds(file: BinaryIO, key: str) -> bool:
    start = OWN_START + key.encode() + b'"'
    file.seek(0)
    return any(line.startswith(start) for line in _lines(file))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    kept = b""
    while part := file.read(TAIL_BYTES):
        *whole, kept = (kept + part).split(b"\n")
        yield from whole


def _mend(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    tail, start = b"", size
    while start > 0 and b"\n" not in tail:
        start = max(0, start - TAIL_BYTES)
        file.seek(start)
        tail = file.read(size - start)
    last = tail.rpartition(b"\n")[2]
    if not last:
        return
    if last.startswith(OWN_START[: len(last)]) and not _is_json(last):
        file.truncate(size - len(last))
    else:
        _append(file, b"\n")


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _flush_folder(folder: Path) -> None:
    """A file that was made now is there after a power cut."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
