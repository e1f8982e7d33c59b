"""Reading a file that a stranger may have put there: it may be a link, a FIFO, a device or endless."""

import os
import stat
from pathlib import Path

OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Opening a file with these follows no link at the end of its path, and does not wait for a FIFO."""


def read_regular(path: Path, bytes_max: int) -> bytes:
    """The first bytes of a regular file. Raises `OSError` for everything else: a link, a folder, a FIFO, a device."""
    descriptor = os.open(path, OPEN_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read(bytes_max)
