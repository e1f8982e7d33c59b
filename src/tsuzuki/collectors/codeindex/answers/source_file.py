"""One read of a source file: all of its bytes from one moment, and the signature that tells whether it changed since.

Links are not followed, neither at the end of a path nor on the way to it.
"""

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tsuzuki.collectors.codeindex.extract import ExtractionFailed, as_utf8
from tsuzuki.collectors.codeindex.tree.files import open_below

READS_MAX = 5


@dataclass(frozen=True)
class SourceFile:
    """The bytes of a file, and its signature when they were read."""

    content: bytes
    signature: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.signature[1]

    @property
    def mtime_ns(self) -> int:
        return self.signature[2]

    @cached_property
    def lines(self) -> list[bytes]:
        """In UTF-8, without their ends. Only a line feed ends a line, as for the parser."""
        try:
            return as_utf8(self.content).split(b"\n")
        except ExtractionFailed:
            return self.content.split(b"\n")

    def line(self, number: int) -> str:
        """The text of a line, counted from 1; empty beyond the end."""
        if not 1 <= number <= len(self.lines):
            return ""
        return self.lines[number - 1].rstrip(b"\r").decode("utf-8", "replace")

    @property
    def line_count(self) -> int:
        """A line feed at the end of the file begins no further line."""
        return len(self.lines) - (self.lines[-1] == b"")


def read_source(root: Path, path: str, *, bytes_max: int) -> SourceFile | None:
    """Read a regular file below the root of at most `bytes_max`; None if there is none that can be read."""
    for _ in range(READS_MAX):
        try:
            found = _read_once(root, path, bytes_max)
        except OSError:
            return None
        if found is not None:
            return found
    return None


def signature_of(path: Path) -> tuple[int, ...]:
    """What differs after every write: inode, size, times of content and of the inode. Empty if it is gone."""
    try:
        return _signature(path.lstat())
    except OSError:
        return ()


def _read_once(root: Path, path: str, bytes_max: int) -> SourceFile | None:
    """None if the file was written meanwhile."""
    descriptor = open_below(root, path)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode) or before.st_size > bytes_max:
            raise OSError("not a regular file within the limit")
        content = file.read(bytes_max + 1)
        after = os.fstat(descriptor)
    unchanged = _signature(before) == _signature(after) and len(content) == after.st_size
    return SourceFile(content, _signature(after)) if unchanged else None


def _signature(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
