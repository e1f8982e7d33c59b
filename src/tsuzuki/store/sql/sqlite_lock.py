"""Who holds the write lock of an SQLite file: which process, as far as the system tells (Linux: /proc/locks), and which
run or other writer in it, if it holds the lock for long.

A note beside the database names the holder for other processes. It is written once a transaction has held the lock for
several seconds, never by a statement. A note that was left behind names a process that does not hold the lock any more.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

LOCKS = Path("/proc/locks")

WRITE_LOCK_BYTE = 120
"""Of the shared-memory file beside a database in WAL mode. From SQLite's file format."""

COMMAND_LENGTH_MAX = 60


@dataclass(frozen=True, kw_only=True)
class LockHolder:
    """The process that has the lock and, if a note names them, its run or purpose and the time when it got the lock."""

    pid: int
    command: str = ""
    run_id: int | None = None
    job: str | None = None
    purpose: str = ""
    since: datetime | None = None

    def __str__(self) -> str:
        if self.run_id is not None:
            return f"run {self.run_id} ({self.job}, process {self.pid})"
        process = f"process {self.pid}{f' ({self.command})' if self.command else ''}"
        return f"{self.purpose} in {process}" if self.purpose else process


def lock_holder(file: Path) -> LockHolder | None:
    """Who holds the lock now; None if it is free or its holder is not known."""
    pid = _locking_pid(file)
    if pid is None:
        return None
    note = _read_note(file)
    if note is not None and note.pid == pid:
        return note
    return LockHolder(pid=pid, command=command_of(pid))


def write_note(file: Path, holder: LockHolder) -> None:
    """Name the holder to other processes. What cannot be written is left out: the database is more important."""
    values = {**asdict(holder), "since": holder.since.isoformat() if holder.since else None}
    path = _note_of(file)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        draft.write_text(json.dumps(values), "utf-8")
        draft.replace(path)


def remove_note(file: Path) -> None:
    with suppress(OSError):
        _note_of(file).unlink(missing_ok=True)


def remove_old_note(file: Path) -> None:
    """Remove a note of a process that does not hold the lock any more."""
    if _note_of(file).exists():
        holder = lock_holder(file)
        if holder is None or holder.since is None:
            remove_note(file)


def _note_of(file: Path) -> Path:
    return Path(f"{file}-holder")


def _read_note(file: Path) -> LockHolder | None:
    try:
        values = json.loads(_note_of(file).read_text("utf-8"))
        since = datetime.fromisoformat(values.pop("since"))
        return LockHolder(**values, since=since)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _locking_pid(file: Path) -> int | None:
    try:
        inode = Path(f"{file}-shm").stat().st_ino
        lines = LOCKS.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        # "1: POSIX  ADVISORY  WRITE 4711 08:02:131094 120 120"; one that waits has "->" before POSIX.
        match line.split():
            case [_, "POSIX", _, "WRITE", pid, place, first, last] if place.rsplit(":", 1)[
                -1
            ] == str(inode) and _covers(first, last):
                return int(pid)
    return None


def _covers(first: str, last: str) -> bool:
    return int(first) <= WRITE_LOCK_BYTE and (last == "EOF" or int(last) >= WRITE_LOCK_BYTE)


def command_of(pid: int) -> str:
    """The command line of a process, shortened; empty if the system does not tell."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    return " ".join(words).strip()[:COMMAND_LENGTH_MAX]
