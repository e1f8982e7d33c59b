"""Reading an SQLite file in a folder where nothing can be written.

In WAL mode even a reader shares memory with writers, through a file beside the database. Where that file is missing
and cannot be made, the database is read as it stands (`immutable`); with a write-ahead log beside it, from a private
copy of both. What is written meanwhile is not seen.
"""

import os
import weakref
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.engine import Dialect

SNAPSHOT = "tsuzuki_snapshot"
"""In the `info` of a connection that reads a snapshot."""


def is_snapshot(file: Path) -> bool:
    """Whether only a snapshot of this file can be read."""
    return (
        file.is_file()
        and not _is_writable(file)
        and not _is_writable(file.parent)
        and not Path(f"{file}-shm").exists()
    )


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


class SnapshotReader:
    """Called by SQLAlchemy for each connection: opens the snapshot if there is no other way."""

    def __init__(self) -> None:
        self._folder: str | None = None

    def __call__(
        self, dialect: Dialect, record: Any, arguments: list[Any], named: dict[str, Any]
    ) -> Any:
        file = Path(arguments[0])
        if named.get("uri") or not is_snapshot(file):
            return None
        record.info[SNAPSHOT] = True
        log = Path(f"{file}-wal")
        if log.exists() and log.stat().st_size:
            return dialect.connect(self._copied(file, log), **named)
        location = f"file:{quote(str(file.absolute()))}?immutable=1"
        return dialect.connect(location, **{**named, "uri": True})

    def _copied(self, file: Path, log: Path) -> str:
        """Made once; removed with this reader, at the latest with the process."""
        import shutil  # noqa: PLC0415 -- every command loads this module, and hardly one makes a copy
        from tempfile import mkdtemp  # noqa: PLC0415 -- the same

        if self._folder is None:
            folder = mkdtemp(prefix="tsuzuki-snapshot-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            for one in (file, log):
                copy = Path(folder, one.name)
                shutil.copyfile(one, copy)
                copy.chmod(0o600)
            self._folder = folder  # only now: half a copy is not read by the next connection
        return str(Path(self._folder, file.name))
