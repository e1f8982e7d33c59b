"""Temporary files of the tests in memory, where there is room: there fsync costs nothing.

The tests crash processes, not the machine, so what a disk would add is only time: half of that of a test on SQLite.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
FREE_BYTES_MIN = 4 * 1024**3
"""A whole run needs about two gigabytes."""


def folder_in_memory() -> str | None:
    """None where memory is short or programs may not be executed from it."""
    if not MEMORY.is_mount() or not os.access(MEMORY, os.W_OK):
        return None
    if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return None
    free = min(shutil.disk_usage(MEMORY).free, _free_memory_bytes())
    return str(MEMORY) if free >= FREE_BYTES_MIN else None


def use_memory() -> None:
    """For this process and all that it starts. A TMPDIR of the caller stays."""
    if "TMPDIR" not in os.environ and (folder := folder_in_memory()):
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # to be found out anew


def _free_memory_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    amounts = dict(line.split(":") for line in lines)
    return int(amounts["MemAvailable"].split()[0]) * 1024
