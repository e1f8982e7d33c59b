"""Whether a file may have been changed after it was read although its size and mtime are the same.

Two writes in one tick of a file system's clock leave the same mtime, and a program may set an mtime back; but it cannot
set the time of the inode. A file is in doubt if either time is not well before it was read: it is read again, and
compared by its hash.
"""

TICK_NS = 100_000_000
"""Ten ticks of the slowest clock that a kernel stamps files with, where it keeps more than milliseconds."""

COARSE_TICK_NS = 2_000_000_000
"""Of a file system that keeps whole seconds, or every second one."""

_MILLISECOND_NS = 1_000_000


def is_in_doubt(mtime_ns: int, ctime_ns: int, *, read_at_ns: int) -> bool:
    """`read_at_ns` is a moment before the file was read."""
    changed_ns = max(mtime_ns, ctime_ns)
    is_fine = changed_ns % _MILLISECOND_NS != 0
    return read_at_ns - changed_ns < (TICK_NS if is_fine else COARSE_TICK_NS)
