"""Which process holds the write lock of an SQLite file, as far as the system tells (Linux: /proc/locks)."""

from pathlib import Path

LOCKS = Path("/proc/locks")

WRITE_LOCK_BYTE = 120
"""Of the shared-memory file beside a database in WAL mode. From SQLite's file format."""

COMMAND_LENGTH_MAX = 60


def lock_holder(file: Path) -> str | None:
    """Process id and command; None if it is not known."""
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
                return f"process {pid}{_command(pid)}"
    return None


def _covers(first: str, last: str) -> bool:
    return int(first) <= WRITE_LOCK_BYTE and (last == "EOF" or int(last) >= WRITE_LOCK_BYTE)


def _command(pid: str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    return f" ({' '.join(words).strip()[:COMMAND_LENGTH_MAX]})"
