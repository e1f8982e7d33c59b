"""Commands under their supervisors, with a grace that a test can shorten."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.executions import Executions
from support.supervised_commands import Grace
from tsuzuki.engine.executors.command.executor import CommandExecutor


@pytest.fixture
def grace() -> Grace:
    return Grace()


@pytest.fixture
def executions(grace: Grace) -> Iterator[Executions]:
    executor = CommandExecutor(
        expand=lambda text, _: text,
        base_folder=Path("/"),
        kill_grace_seconds=lambda: grace.seconds,
    )
    yield Executions(executor)
    executor.close()
