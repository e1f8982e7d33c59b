"""Commands in a workspace of their own, one executor for each test file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Commands


@pytest.fixture(scope="module")
def shared_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("commands") / "workspace")
    yield commands
    commands.executor.close()


@pytest.fixture
def commands(shared_commands: Commands) -> Commands:
    return shared_commands.fresh()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path
