"""The text of a YAML file, and the line and column of an offset in it.

Nothing is parsed here. The result is UTF-8 text of bounded size. Line endings and a byte order mark
are remembered, so that an edited file keeps them.
"""

import codecs
import stat
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from tsuzuki.model.errors import ConfigurationError, FilePlace, FileUnusable
from tsuzuki.model.secrets import mask_secrets

SIZE_MAX = 1024 * 1024
BOM = "\ufeff"
_OTHER_ENCODINGS = (
    codecs.BOM_UTF32_LE,
    codecs.BOM_UTF32_BE,
    codecs.BOM_UTF16_LE,
    codecs.BOM_UTF16_BE,
)


@dataclass(frozen=True, kw_only=True)
class YamlSource:
    """A file's text without its byte order mark. Offsets count characters from 0."""

    file: str
    text: str
    has_bom: bool = False

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        starts.extend(at + 1 for at, character in enumerate(self.text) if character == "\n")
        return starts

    @property
    def newline(self) -> str:
        """The line ending of this file, taken from its first line."""
        return "\r\n" if self.line_at(0).endswith("\r\n") else "\n"

    def line_start(self, offset: int) -> int:
        """The start of the line that contains `offset`."""
        return self._line_starts[bisect_right(self._line_starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """The end of the line that contains `offset`, after its line ending."""
        index = bisect_right(self._line_starts, offset)
        return self._line_starts[index] if index < len(self._line_starts) else len(self.text)

    def line_at(self, offset: int) -> str:
        """The whole line that contains `offset`, with its line ending."""
        return self.text[self.line_start(offset) : self.line_end(offset)]

    def column(self, offset: int) -> int:
        """The number of characters before `offset` in its line."""
        return offset - self.line_start(offset)

    def place(self, offset: int) -> FilePlace:
        """Line and column of `offset`, counted from 1, and the line with its passwords redacted."""
        return FilePlace(
            file=self.file,
            line=bisect_right(self._line_starts, offset),
            column=self.column(offset) + 1,
            text=mask_secrets(self.line_at(offset).rstrip("\r\n")),
        )

    def error(self, offset: int, message: str, *, hint: str, code: str) -> ConfigurationError:
        return ConfigurationError(message, hint=hint, place=self.place(offset), code=code)

    def encode(self) -> bytes:
        """The bytes of this text: the inverse of `decode_source`."""
        return ((BOM if self.has_bom else "") + self.text).encode("utf-8")


FileStatus: TypeAlias = tuple[int, int, int]
"""What changes with each new content of a file."""


def file_status(path: Path | None) -> FileStatus | None:
    """None if the file is not there."""
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if status else None


def read_source(path: Path) -> YamlSource:
    """Read the text at `path`. Raises `ConfigurationError` if it is missing, too large or binary."""
    return decode_source(read_bytes(path), file=str(path))


def read_bytes(path: Path) -> bytes:
    """Read the regular file at `path`, at most one byte more than `SIZE_MAX`."""
    try:
        # Reading a pipe or a device would block or never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _file_error(path, "is not a regular file", "Name a YAML file, not a folder.")
        with path.open("rb") as stream:
            return stream.read(SIZE_MAX + 1)
    except FileNotFoundError:
        hint = "Create it with `tsuzuki init`, or name another file."
        raise _file_error(path, "does not exist", hint) from None
    except OSError as problem:
        raise FileUnusable(
            f"cannot read {path}: {problem.strerror}",
            hint="Check the permissions of the file and its folders.",
            place=FilePlace(file=str(path)),
            code="config_unreadable",
        ) from None


def decode_source(content: bytes, *, file: str) -> YamlSource:
    """Decode `content`. Raises `ConfigurationError` if it is too large, or at the first byte that is
    not UTF-8."""
    if len(content) > SIZE_MAX:
        hint = "Keep data out of the configuration file."
        raise _file_error(file, "is larger than 1 MiB", hint)
    if content.startswith(_OTHER_ENCODINGS):
        raise _file_error(file, "is not UTF-8", "Save the file as UTF-8.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        readable = content[: problem.start].decode("utf-8").removeprefix(BOM)
        raise YamlSource(file=file, text=readable).error(
            len(readable),
            f"byte 0x{content[problem.start]:02x} is not UTF-8 text",
            hint="Save the file as UTF-8.",
            code="config_encoding",
        ) from None
    return YamlSource(file=file, text=text.removeprefix(BOM), has_bom=text.startswith(BOM))


def _file_error(path: Path | str, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(
        f"{path} {what}", hint=hint, place=FilePlace(file=str(path)), code="config_file"
    )
