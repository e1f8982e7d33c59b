"""Format of an archived log: gzip'd JSON lines, content-addressed.

The name holds the run, the day it finished and a digest of its lines. The same lines have the same name
wherever and however often they are written, so a write is idempotent; lines that differ have another name and
replace nothing. A deposed leader that does not know it yet can therefore do no harm here, although a fence in
the database cannot protect a file. The digest is also the checksum: a reader checks that the lines are those
that were written.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from typing import IO

from tsuzuki.model import jsontext
from tsuzuki.model.errors import ConfigurationError, FileUnusable, NotFound
from tsuzuki.store.logs import LogLine
from tsuzuki.store.sql.stored_values import to_text

DIGEST_BYTES = 8
COMPRESSION = 6
_NAME = re.compile(r"\d{4}/\d\d/\d\d/run-[1-9]\d*-(?P<digest>[0-9a-f]{16})\.jsonl\.gz", re.ASCII)
_DAMAGE_ERRORS = (
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    RecursionError,
)


class DamagedLog(FileUnusable):
    """An archived log exists, but is not what was written. A retry does not repair it."""

    code = "log_archive_damaged"
    permanent = True


def name_of(run_id: int, finished_at: datetime, digest: str) -> str:
    """The path of a log in its archive: a folder per day, a file per run."""
    day = finished_at.astimezone(UTC).strftime("%Y/%m/%d")
    return f"{day}/run-{run_id}-{digest}.jsonl.gz"


def name_in(ref: str, *, scheme: str) -> str:
    """The name that `ref` holds, if it is a ref of this kind of archive.

    Accepts only names that `name_of` makes, so no ref leads out of its archive (path traversal).
    """
    kind, _, name = ref.partition(":")
    if kind != scheme and _NAME.fullmatch(name):
        raise ConfigurationError(
            f"the log {ref} is in another archive than the configured one",
            hint="Move its files to the archive named by `log_archive`, or change `log_archive` "
            "back.",
            code="log_archive_changed",
        )
    if kind != scheme or not _NAME.fullmatch(name):
        raise NotFound(
            f"{ref!r} does not name an archived log",
            hint="Tsuzuki did not create this reference.",
            code="log_ref",
        )
    return name


def write_lines(target: IO[bytes], lines: Iterable[LogLine]) -> str:
    """Write `lines`, one at a time, and answer their digest."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    # No timestamp and no file name in the gzip header, so that the same lines are the same bytes.
    with gzip.GzipFile(
        filename="", mode="wb", compresslevel=COMPRESSION, fileobj=target, mtime=0
    ) as packed:
        for line in lines:
            raw = _encoded(line)
            digest.update(raw)
            packed.write(raw)
    return digest.hexdigest()


def read_lines(source: IO[bytes], *, ref: str, after_seq: int) -> Iterator[LogLine]:
    """The lines after `after_seq`, one at a time. Raises `DamagedLog`, at the latest at the end."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    try:
        with gzip.GzipFile(fileobj=source, mode="rb") as text:
            for raw in text:
                digest.update(raw)
                line = _decoded(raw)
                if line.seq > after_seq:
                    yield line
    except _DAMAGE_ERRORS as problem:
        raise damaged(ref) from problem
    except OSError as problem:
        raise unreadable(ref, problem.strerror) from problem
    found = _NAME.search(ref)
    if found is None or found["digest"] != digest.hexdigest():
        raise damaged(ref)


def missing(ref: str) -> NotFound:
    return NotFound(
        f"the archived log {ref} is missing",
        hint="It may have been deleted or moved: check where `log_archive` points.",
        code="log_archive_missing",
    )


def damaged(ref: str) -> DamagedLog:
    return DamagedLog(
        f"the archived log {ref} is damaged",
        hint="Restore this file from a backup of the archive.",
    )


def unreadable(ref: str, cause: str | None) -> FileUnusable:
    return FileUnusable(
        f"cannot read the archived log {ref}: {cause or 'no response'}",
        hint="Check `log_archive` and this user's permissions there.",
        code="log_archive",
    )


def unwritable(location: str, cause: str | None) -> FileUnusable:
    return FileUnusable(
        f"cannot write the log archive {location}: {cause or 'no response'}",
        hint="No log was lost: logs stay in the database until the archive is writable.",
        code="log_archive",
    )


def _encoded(line: LogLine) -> bytes:
    fields = {"seq": line.seq, "at": to_text(line.at), "stream": line.stream, "body": line.body}
    return jsontext.encode(fields).encode() + b"\n"


def _decoded(raw: bytes) -> LogLine:
    fields = jsontext.decode(raw.decode())
    return LogLine(
        seq=fields["seq"],
        at=datetime.fromisoformat(fields["at"]),
        stream=fields["stream"],
        body=fields["body"],
    )
