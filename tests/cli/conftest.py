"""Folders to type commands in: an empty one, and one as `tsuzuki init` leaves it."""

import shutil
import time
from pathlib import Path

import pytest

from support.workspace import Workspace
from tsuzuki.cli import run_cli

TICK_SECONDS = 600
TEST_SECONDS = 10


@pytest.fixture
def empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """A folder with nothing in it."""
    return Workspace(tmp_path, capsys)


@pytest.fixture(scope="session")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("initialised")
    assert run_cli(["init", "--quiet"], environ={}, cwd=folder) == 0
    return folder


@pytest.fixture
def workspace(initialised: Path, empty: Workspace) -> Workspace:
    """A folder as `tsuzuki init` leaves it: one job, `hello`, every ten minutes. No test begins just
    before such a moment: it would find one more run than it has asked for."""
    seconds_left = TICK_SECONDS - time.time() % TICK_SECONDS
    if seconds_left < TEST_SECONDS:
        time.sleep(seconds_left)
    shutil.copytree(initialised, empty.folder, dirs_exist_ok=True)
    return empty
