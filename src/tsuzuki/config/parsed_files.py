"""Parsed configuration files, kept in a folder of the user: reading one takes a hundredth of parsing the file.

A record is found by the digest of what it was made from, so it is never out of date; it is for its owner only, and
one that cannot be trusted or read is as good as none. Variables are not expanded in it, so no secret is in it.
"""

import json
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

RECORDS_MAX = 32
SUFFIX = ".json"


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Where records are kept; None without a home."""
    if named := environ.get("XDG_CACHE_HOME"):
        base = Path(named)
    elif home := environ.get("HOME"):
        base = Path(home, "Library/Caches" if sys.platform == "darwin" else ".cache")
    else:
        return None
    return base / "tsuzuki" / "configuration" if base.is_absolute() else None


def read_record(folder: Path, key: str) -> dict[str, Any] | None:
    """The record with this key, if there is one that only its owner, this user, can have written."""
    with suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(folder / f"{key}{SUFFIX}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            status = os.fstat(descriptor)
            is_private = status.st_uid == os.getuid() and not status.st_mode & 0o077
            record = json.load(stream) if is_private and stat.S_ISREG(status.st_mode) else None
            return record if isinstance(record, dict) else None
    return None


def write_record(folder: Path, key: str, record: Mapping[str, Any]) -> None:
    """Keep a record, and the newest of the others. A folder that cannot be written is left alone."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(record, stream)
            os.replace(temporary, folder / f"{key}{SUFFIX}")  # noqa: PTH105 - beside `os.open`
        except BaseException:
            os.unlink(temporary)  # noqa: PTH108 - beside `os.open`
            raise
        _prune(folder)


def _prune(folder: Path) -> None:
    records = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in records[RECORDS_MAX:]:
        path.unlink(missing_ok=True)
