"""Programs that only Debian packages have, for tests of `make test-full`: downloaded and unpacked below `.cache`.

No root is needed: `apt-get download` asks the sources of this machine, `dpkg-deb -x` unpacks into a folder.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

CACHE = Path(__file__).parents[2] / ".cache" / "debian"
DOWNLOAD_SECONDS = 300
LIBRARIES = "usr/lib/x86_64-linux-gnu"


class DebianProgram(NamedTuple):
    path: Path
    environ: Mapping[str, str]
    """Environment with the libraries unpacked next to the program."""


def debian_program(path: str, *packages: str) -> DebianProgram:
    """The program at `path` of these packages. The test is skipped on a machine that has no Debian packages."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("needs the packages of Debian")
    folder = CACHE / "-".join(packages)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _unpack(packages, folder)
    return DebianProgram(folder / path, {**os.environ, "LD_LIBRARY_PATH": str(folder / LIBRARIES)})


def _unpack(packages: tuple[str, ...], folder: Path) -> None:
    """Unpack into a temporary folder next to the target, and rename it when complete."""
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    subprocess.run(
        ["apt-get", "download", *packages], cwd=unfinished, check=True, timeout=DOWNLOAD_SECONDS
    )
    for archive in unfinished.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, unfinished], check=True)
        archive.unlink()
    unfinished.rename(folder)
