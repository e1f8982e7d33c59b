"""The code of the product as it was before its newest migration, from the history of this repository."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from support.archives import extract
from tsuzuki.store.schema.migrate import ENGINE

ROOT = Path(__file__).parents[2]
VERSIONS = "src/tsuzuki/store/schema/migrations/versions"
REVISION_LENGTH = 4
"""A file of a migration starts with the number of its revision."""


class FormerVersion:
    """An extracted source tree. It runs with the interpreter and the packages of today."""

    def __init__(self, folder: Path) -> None:
        self.commit = commit_before_newest_migration()
        packed = _git("archive", "--format=tar", self.commit, "src")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            extract(archive, folder)
        self._source = folder / "src"
        # Once, and not while a test waits for a process.
        command = [sys.executable, "-m", "compileall", "-q", str(self._source)]
        subprocess.run(command, check=True)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Before a command: `tsuzuki` is then this version."""
        return ("env", f"PYTHONPATH={self._source}")


def commit_before_newest_migration() -> str:
    """The newest commit of this branch that has the revisions of the engine up to the one before the newest, each
    once. Skips the test where the history is not there."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git repository: the version before is in its history")
    if _git("rev-parse", "--is-shallow-repository").strip() == b"true":
        pytest.skip("this clone is shallow, and the version before is in the history: clone whole")
    touching = _git("log", "--format=%H", "--", VERSIONS).decode().split()
    for commit in ["HEAD", *(f"{one}^" for one in touching)]:
        named = _git("ls-tree", "--name-only", commit, f"{VERSIONS}/").decode().splitlines()
        if sorted(Path(name).name[:REVISION_LENGTH] for name in named) == ENGINE.revisions[:-1]:
            return _git("rev-parse", commit).decode().strip()
    raise AssertionError(f"no commit of this branch is from before {ENGINE.newest()}")


def _git(*words: str) -> bytes:
    command = ["git", "-C", str(ROOT), "-c", "safe.directory=*", *words]
    return subprocess.run(command, check=True, capture_output=True).stdout
