"""No process of a command outlives it, whatever session or group it has moved to."""

import os
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from support.executions import Executions, eventually, watching
from support.supervised_commands import SHORT_GRACE, TREE, Grace, shell
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.model.states import Reason


@pytest.mark.parametrize("at_once", [False, True])
def test_the_whole_tree_dies_when_it_is_stopped(
    executions: Executions, grace: Grace, at_once: bool
) -> None:
    grace.seconds = SHORT_GRACE
    execution = executions.start(shell(TREE + "trap '' TERM; while :; do sleep 0.05; done"))
    with ExitStack() as stack:
        pids = executions.run_io.wait_for(5)
        tree = [stack.enter_context(watching(int(pid))) for pid in pids]
        execution.stop(StopCause.TIMEOUT, at_once=at_once)
        assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
        assert all(process.has_ended(within_seconds=0) for process in tree)


def test_what_the_command_leaves_behind_dies_with_it_and_its_exit_code_stands(
    executions: Executions, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    executions.start(shell(TREE + f"read x < {gate}; exit 7"))
    with ExitStack() as stack:
        pids = executions.run_io.wait_for(5)
        tree = [stack.enter_context(watching(int(pid))) for pid in pids]
        gate.write_text("go on\n")
        assert executions.outcome() == Failed(reason=Reason.HANDLER_FAILED, error="exit code 7")
        assert all(process.has_ended(within_seconds=0) for process in tree)


def test_an_output_held_open_by_a_daemon_does_not_hold_up_the_run(executions: Executions) -> None:
    executions.start(shell("(setsid sleep 300 &) ; echo done"))
    assert executions.outcome() == Succeeded(result={"exit_code": 0})
    assert executions.run_io.of("stdout") == ["done"]


def test_an_output_held_open_by_a_foreign_process_does_not_hold_up_the_run(
    executions: Executions, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    executions.start(shell(f"echo $$; read x < {gate}; printf last"))
    (pid,) = executions.run_io.wait_for(1)
    with Path(f"/proc/{pid}/fd/1").open("wb"):
        gate.write_text("go on\n")
        assert executions.outcome() == Succeeded(result={"exit_code": 0})
    assert executions.run_io.of("stdout")[1:] == ["last"]


def test_an_orphan_that_ends_by_itself_does_not_stay_as_a_zombie(
    executions: Executions, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    executions.start(shell(f"(sh -c 'echo $$; read x < {gate}' &); while :; do sleep 0.05; done"))
    (orphan,) = executions.run_io.wait_for(1)
    gate.write_text("go on\n")
    eventually(lambda: not psutil.pid_exists(int(orphan)))
    assert executions.outcomes == []
