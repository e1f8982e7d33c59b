"""A tree with a few Python files, and builds whose index files lie beside it."""

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.model.clock import ManualClock

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
Build = Callable[[], BuildJob]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def index_folder(tmp_path: Path) -> Path:
    return tmp_path / "indexes"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """No repository: three files that define five things."""
    root = tmp_path / "tree"
    (root / "shop").mkdir(parents=True)
    (root / "shop" / "cart.py").write_text("class Cart:\n    def add(self):\n        total()\n")
    (root / "shop" / "sums.py").write_text(
        "def total():\n    return 0\n\ndef tax():\n    total()\n"
    )
    (root / "main.py").write_text("from shop.cart import Cart\n\ndef main():\n    Cart().add()\n")
    return root


@pytest.fixture
def repository(tree: Path) -> Path:
    """The same tree in git, with nothing committed."""
    git(tree, "init", "--quiet")
    return tree


@pytest.fixture
def builds(index_folder: Path) -> Builds:
    return Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1)


@pytest.fixture
def build(builds: Builds, tree: Path) -> Build:
    """Build to the end."""
    return lambda: built(builds, tree)


def built(builds: Builds, root: Path) -> BuildJob:
    started = builds.start(root)
    assert started.is_new
    job = builds.jobs.wait(started.id, 60)
    assert job is not None
    assert job.status != "running"
    return job


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
