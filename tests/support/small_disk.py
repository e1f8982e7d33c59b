"""A disk of a few megabytes that a test may fill: a file system in memory, in a namespace of its own.

Only processes that are started inside see it. The test reaches its files from outside, but not with SQLite,
which would resolve the way in to the wrong place.
"""

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

PIECE = b"\0" * 4096
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]


def can_be_made() -> bool:
    """Whether this system lets us: some forbid namespaces to all but root."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    probe = [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


class SmallDisk:
    """There while it is open. It is mounted on `folder`, for processes `inside` only."""

    def __init__(self, folder: Path, *, megabytes: int) -> None:
        self.folder = folder
        script = f'mount -t tmpfs -o size={megabytes}m tmpfs "$0" && echo mounted && exec cat'
        self._keeper = subprocess.Popen(
            [*UNSHARE, "sh", "-c", script, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"mounted\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._keeper.communicate(timeout=10)

    @property
    def inside(self) -> list[str]:
        """What runs a command there, beside the folder: entering leaves the working folder behind."""
        names = ["--user", "--mount", "--preserve-credentials"]
        return ["nsenter", f"--target={self._keeper.pid}", *names, f"--wd={self.folder.parent}"]

    @property
    def seen_from_outside(self) -> Path:
        return Path(f"/proc/{self._keeper.pid}/root{self.folder}")

    def fill(self) -> None:
        """Leave no room at all."""
        ballast = os.open(
            self.seen_from_outside / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )
        try:
            while True:
                os.write(ballast, PIECE)
        except OSError as problem:
            assert problem.errno == errno.ENOSPC  # noqa: PT017 -- that is what we are here for
        finally:
            os.close(ballast)

    def make_room(self) -> None:
        (self.seen_from_outside / "ballast").unlink()
