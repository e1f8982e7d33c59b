"""Folders to type commands in: an empty one, and one as `tsuzuki init` leaves it."""

import shutil
from pathlib import Path

import pytest

from support.workspace import Workspace
from tsuzuki.cli import run_cli


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
    """A folder as `tsuzuki init` leaves it: one job, `hello`, every ten minutes. A test that counts runs
    switches it off first: its moment may come at any time."""
    shutil.copytree(initialised, empty.folder, dirs_exist_ok=True)
    return empty
