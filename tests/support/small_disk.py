"""A disk of a few megabytes for a test to fill: a tmpfs in its own mount namespace.

Only processes that are started inside see it. The test reaches its files through /proc, but not with SQLite, which
would resolve that path to a wrong one.
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
    """Whether this system can create a small disk; some restrict namespaces to root."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    probe = [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


class SmallDisk:
    """Mounted on `folder` while it is open, for processes `inside` only."""

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
        self._keeper.communicate(timeout=120)

    @property
    def inside(self) -> list[str]:
        """A command prefix that enters the namespace, with the parent of `folder` as working directory."""
        names = ["--user", "--mount", "--preserve-credentials"]
        return ["nsenter", f"--target={self._keeper.pid}", *names, f"--wd={self.folder.parent}"]

    @property
    def seen_from_outside(self) -> Path:
        return Path(f"/proc/{self._keeper.pid}/root{self.folder}")

    def fill(self) -> None:
        """Use up all space."""
        ballast = os.open(
            self.seen_from_outside / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )
        try:
            while True:
                os.write(ballast, PIECE)
        except OSError as problem:
            assert problem.errno == errno.ENOSPC  # noqa: PT017 -- the disk is full, as wanted
        finally:
            os.close(ballast)

    def make_room(self) -> None:
        (self.seen_from_outside / "ballast").unlink()
