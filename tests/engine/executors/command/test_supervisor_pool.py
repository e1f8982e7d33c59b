"""Supervisors are reused: one for as many commands as run at the same time, and none that is not needed."""

import signal
from contextlib import suppress

import psutil
import pytest

from support.commands import Commands
from support.executions import Executions, a_task, eventually, watching
from support.supervised_commands import supervisors
from tsuzuki.engine.executors.command import supervisor_pool
from tsuzuki.engine.outcome import Failed, Succeeded

SUCCEEDED = Succeeded(result={"exit_code": 0})


def forked() -> set[int]:
    """The supervisors, without the server that forks them. One may end while they are counted."""
    found = supervisors()
    pids = {process.pid for process in found}
    counted: set[int] = set()
    for process in found:
        with suppress(psutil.NoSuchProcess):
            if process.ppid() in pids:
                counted.add(process.pid)
    return counted


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_one_command_after_the_other_has_the_same_supervisor(commands: Commands) -> None:
    commands.run("true")
    before = forked()
    for _ in range(5):
        assert commands.run("sh", "-c", "sleep 300 & exit 0")[0] == SUCCEEDED
        assert isinstance(commands.run("no-such-program")[0], Failed)
    assert forked() == before


def test_commands_at_the_same_time_have_one_each_and_their_outputs_are_their_own(
    commands: Commands,
) -> None:
    executions = Executions(commands.executor)
    for first in (0, 4):
        tasks = [
            a_task("command", {"argv": ["sh", "-c", "echo $TSUZUKI_RUN_ID"]}, run_id=number)
            for number in range(first, first + 4)
        ]
        executions.start(*tasks)
        executions.wait_for_all()
    assert len(forked()) <= 4
    assert sorted(executions.run_io.of("stdout")) == list("01234567")


def test_an_idle_supervisor_that_was_killed_is_replaced(commands: Commands) -> None:
    commands.run("true")
    for pid in forked():
        with watching(pid) as supervisor:
            signal.pidfd_send_signal(supervisor.handle, signal.SIGKILL)
            assert supervisor.has_ended()
    assert commands.run("true")[0] == SUCCEEDED


def test_a_killed_server_is_replaced_and_its_supervisors_are_not_needed(
    commands: Commands,
) -> None:
    commands.run("true")
    processes = supervisors()
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # the server takes its supervisors with it
            process.kill()
    eventually(lambda: all(has_ended(process) for process in processes))
    assert commands.run("true")[0] == SUCCEEDED


def test_a_supervisor_that_is_not_needed_for_a_while_is_let_go(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_pool, "UNUSED_SECONDS_MAX", 0.05)
    executions = Executions(commands.executor)
    options = {"argv": ["sleep", "0.1"]}
    executions.start(*(a_task("command", options, run_id=number) for number in range(5)))
    executions.wait_for_all()
    commands.run("true")
    eventually(lambda: not forked())
    assert commands.run("true")[0] == SUCCEEDED
