"""The deadline that a worker renews: its commands end when it does not, whatever else the worker does."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.executions import Executions
from support.supervised_commands import TREE, shell
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.engine.outcome import StopCause, Stopped, Succeeded
from tsuzuki.model.clock import SystemClock


@pytest.fixture
def executor() -> Iterator[CommandExecutor]:
    executor = CommandExecutor(
        expand=lambda text, _: text, base_folder=Path("/"), kill_grace_seconds=lambda: 60.0
    )
    yield executor
    executor.close()


@pytest.fixture
def executions(executor: CommandExecutor) -> Executions:
    return Executions(executor)


def test_a_command_whose_deadline_passes_is_ended_with_all_its_processes(
    executor: CommandExecutor, executions: Executions
) -> None:
    """It could not be confirmed: its worker renewed nothing."""
    executor.renew_deadline(SystemClock().monotonic() + 3)
    executions.start(shell(TREE + "trap '' TERM; while :; do sleep 0.05; done"))
    pids = [int(pid) for pid in executions.run_io.wait_for(5)]
    assert executions.outcome() == Stopped(cause=StopCause.NOT_CONFIRMED)
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_a_deadline_that_is_renewed_ends_nothing(
    executor: CommandExecutor, executions: Executions
) -> None:
    executor.renew_deadline(SystemClock().monotonic() + 1)
    executions.start(shell("echo up; sleep 1.5"))
    executor.renew_deadline(SystemClock().monotonic() + 60)
    assert executions.outcome() == Succeeded(result={"exit_code": 0})


def test_a_deadline_that_passes_all_at_once_ends_the_command(
    executor: CommandExecutor, executions: Executions
) -> None:
    """As in a suspend of the machine, in which the deadline passes and the supervisor's timeout stands still."""
    executor.renew_deadline(SystemClock().monotonic() + 600)
    executions.start(shell("echo up; sleep 6"))
    executions.run_io.wait_for(1)
    executor.renew_deadline(SystemClock().monotonic() - 1)
    assert executions.outcome() == Stopped(cause=StopCause.NOT_CONFIRMED)


def test_after_the_deadline_nothing_is_started(
    executor: CommandExecutor, executions: Executions, tmp_path: Path
) -> None:
    executor.renew_deadline(SystemClock().monotonic() - 1)
    executions.start(shell(f"touch {tmp_path}/started"))
    assert executions.outcome() == Stopped(cause=StopCause.NOT_CONFIRMED)
    assert not (tmp_path / "started").exists()


def test_without_a_heartbeat_ever_there_is_no_deadline(executions: Executions) -> None:
    executions.start(shell("sleep 0.2"))
    assert executions.outcome() == Succeeded(result={"exit_code": 0})
