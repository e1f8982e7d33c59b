"""Log archive in an object store: S3 and compatible ones, Google, Azure, and all others that obstore opens.

obstore finds the credentials: it reads the environment variables that each store's own tools read.
"""

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from tempfile import SpooledTemporaryFile
from typing import Any

from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

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

SPOOLED_BYTES_MAX = 4 * 1024 * 1024
"""A log that is smaller than this when compressed is buffered in memory, not on the local disk."""

CHUNK_BYTES = 256 * 1024

TIMEOUTS: dict[str, Any] = {
    # A reader of a log waits for this; the archivist retries a write a minute later.
    "client_options": {"connect_timeout": "5s", "timeout": "60s"},
    "retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
}


class ObjectArchive:
    """One object per run, under the prefix of the URL."""

    SCHEME = "object"

    def __init__(self, url: str) -> None:
        self._location = _without_secrets(url)
        self._store = _open(url, location=self._location)

    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        # Compressed before anything is sent: the name holds the digest, and a log that cannot be read to its
        # end must leave no object behind.
        with SpooledTemporaryFile(max_size=SPOOLED_BYTES_MAX) as packed, self._translated_errors():
            name = name_of(run_id, finished_at, write_lines(packed, lines))
            packed.seek(0)
            self._store.put(name, packed)
        return f"{self.SCHEME}:{name}"

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        name = name_in(ref, scheme=self.SCHEME)
        try:
            chunks = iter(self._store.get(name).stream(min_chunk_size=CHUNK_BYTES))
            with io.BufferedReader(_Chunks(chunks)) as source:
                yield from read_lines(source, ref=ref, after_seq=after_seq)
        except FileNotFoundError:
            raise missing(ref) from None
        except BaseError as problem:
            raise unreadable(ref, _first_line(problem)) from problem

    def delete(self, ref: str) -> None:
        name = name_in(ref, scheme=self.SCHEME)
        with self._translated_errors():
            try:
                self._store.delete(name)
            except FileNotFoundError:
                return  # some stores raise for a missing object, others do not

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as problem:
            raise unwritable(self._location, _first_line(problem)) from problem


class _Chunks(io.RawIOBase):
    """Chunks as they arrive, as a file that can be read once, forward only."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _open(url: str, *, location: str) -> ObjectStore:
    options = {"mkdir": True} if url.startswith("file:") else TIMEOUTS
    try:
        return from_url(url, **options)
    except (BaseError, ValueError, OSError):
        raise ConfigurationError(
            f"cannot open `log_archive` as an object store: {location}",
            hint="Write s3://bucket/prefix, gs://bucket/prefix, az://account/container/prefix, "
            "or the path of a folder.",
            code="log_archive",
        ) from None  # its own message may contain a password of the URL


def _without_secrets(url: str) -> str:
    """Enough of `url` to recognise the archive."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def _first_line(problem: Exception) -> str:
    """The first line of the store's error, without the query of a URL, which may contain a signature."""
    first, *_ = str(problem).splitlines() or [type(problem).__name__]
    return re.sub(r"\?\S+", "", first)
