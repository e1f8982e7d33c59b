"""The supervisor: whichever process dies, no process of a command is left, and it ends exactly once."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from support.executions import Executions, a_task, eventually, watching
from support.threads import at_once
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.states import Reason

LONG_GRACE, SHORT_GRACE = 60.0, 0.2

TREE = """
sh -c 'echo $$; exec sleep 300' &
setsid sh -c 'echo $$; exec sleep 300' &
timeout 299 sh -c 'echo $$; exec sleep 300' &
python3 -c '
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        signal.pause()
    os._exit(0)
os.wait()
'
echo $$
"""
"""Five processes that print their ids: in the group, in a session of its own, in a group of its own,
a daemon that has forked twice and lost its parent, and the shell itself."""


class Grace:
    seconds = LONG_GRACE


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


def shell(script: str, **changes: Any) -> Task:
    return a_task("command", {"argv": ["sh", "-c", script]}, **changes)


def processes_with(words: str, *, below: int | None = None) -> list[psutil.Process]:
    """Those below a process, ours by default, whose command line holds these words."""
    found = []
    for process in psutil.Process(below).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if words in " ".join(process.cmdline()):
                found.append(process)
    return found


def supervisors(*, below: int | None = None) -> list[psutil.Process]:
    """The program that starts the commands, and the supervisors it has forked."""
    return processes_with("supervisor.server", below=below)


# --- asked to stop --------------------------------------------------------------------------------


def test_a_command_that_is_asked_to_end_is_stopped_even_if_it_exits_with_0(
    executions: Executions,
) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    execution = executions.start(shell(script))
    executions.run_io.wait_for(1)
    execution.stop(StopCause.TIMEOUT)
    assert executions.outcome() == Stopped(cause=StopCause.TIMEOUT)
    assert executions.run_io.of("stdout") == ["ready", "bye"]


def test_a_command_that_does_not_stop_is_killed_after_the_grace(
    executions: Executions, grace: Grace
) -> None:
    grace.seconds = SHORT_GRACE
    execution = executions.start(shell("trap '' TERM; echo $$; while :; do sleep 0.05; done"))
    (pid,) = executions.run_io.wait_for(1)
    with watching(int(pid)) as command:
        execution.stop(StopCause.CANCELED)
        assert executions.outcome() == Stopped(cause=StopCause.CANCELED)
        assert command.has_ended(within_seconds=0)


def test_a_harsher_stop_does_not_wait_for_the_grace_of_the_first(executions: Executions) -> None:
    execution = executions.start(
        shell("trap 'echo no' TERM; echo $$; while :; do sleep 0.05; done")
    )
    executions.run_io.wait_for(1)
    execution.stop(StopCause.SHUTDOWN)
    executions.run_io.wait_for(2)
    execution.stop(StopCause.FENCED, at_once=True)
    assert executions.outcome() == Stopped(cause=StopCause.SHUTDOWN)


def test_asking_again_changes_nothing(executions: Executions) -> None:
    execution = executions.start(
        shell("trap 'echo asked' TERM; echo $$; while :; do sleep 0.05; done")
    )
    executions.run_io.wait_for(1)
    for _ in range(5):
        execution.stop(StopCause.CANCELED)
    executions.run_io.wait_for(2)
    execution.stop(StopCause.TIMEOUT, at_once=True)
    assert executions.outcome() == Stopped(cause=StopCause.CANCELED)
    assert executions.run_io.of("stdout")[1:] == ["asked"]


def test_a_stop_after_the_end_changes_nothing(executions: Executions) -> None:
    execution = executions.start(shell("exit 0"))
    assert executions.outcome() == Succeeded(result={"exit_code": 0})
    execution.stop(StopCause.CANCELED)
    execution.stop(StopCause.CANCELED, at_once=True)
    executions.start(shell("exit 0", run_id=2))
    assert len(executions.wait_for_all()) == 2


def test_a_process_that_was_halted_is_asked_all_the_same(executions: Executions) -> None:
    execution = executions.start(shell("echo $$; kill -STOP $$; sleep 300"))
    (pid,) = executions.run_io.wait_for(1)
    eventually(lambda: psutil.Process(int(pid)).status() == psutil.STATUS_STOPPED)
    execution.stop(StopCause.CANCELED)
    assert executions.outcome() == Stopped(cause=StopCause.CANCELED)


def test_a_process_in_a_group_of_its_own_is_asked_too(executions: Executions) -> None:
    script = """
    trap 'echo shell' TERM
    timeout 299 sh -c 'trap "echo inner; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    """
    execution = executions.start(shell(script))
    executions.run_io.wait_for(1)
    execution.stop(StopCause.CANCELED)
    assert executions.outcome() == Stopped(cause=StopCause.CANCELED)
    assert sorted(executions.run_io.of("stdout")[1:]) == ["inner", "shell"]


# --- leaving nothing behind -----------------------------------------------------------------------


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


# --- whichever process dies -----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_whole_tree_dies_with_its_worker(number: signal.Signals) -> None:
    options = {"argv": ["sh", "-c", TREE + "trap '' TERM; while :; do sleep 0.05; done"]}
    tests = Path(__file__).parents[3]
    with (
        subprocess.Popen(
            [sys.executable, "-m", "support.worker_process", json.dumps(options)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tests)},
        ) as worker,
        ExitStack() as stack,
    ):
        assert worker.stdout is not None
        pids = [int(worker.stdout.readline()) for _ in range(5)]
        beside = [process.pid for process in supervisors(below=worker.pid)]
        assert len(beside) == 2
        processes = [stack.enter_context(watching(pid)) for pid in (*pids, *beside)]
        worker.send_signal(number)
        assert all(process.has_ended() for process in processes)


def test_a_command_dies_with_its_supervisor_and_the_run_says_so(executions: Executions) -> None:
    executions.start(shell(TREE + "sleep 300"))
    with ExitStack() as stack:
        tree = [stack.enter_context(watching(int(pid))) for pid in executions.run_io.wait_for(5)]
        server, supervisor = sorted(supervisors(), key=lambda process: process.create_time())
        assert supervisor.ppid() == server.pid
        supervisor.kill()
        outcome = executions.outcome()
        assert isinstance(outcome, Failed)
        assert outcome.error == "the supervisor of the command was killed, and the command with it"
        assert all(process.has_ended() for process in tree)


def test_commands_go_on_when_the_program_that_started_them_is_killed(
    executions: Executions,
) -> None:
    first = executions.start(shell("echo first; while :; do sleep 0.05; done"))
    executions.run_io.wait_for(1)
    server = next(process for process in supervisors() if process.ppid() == os.getpid())
    with watching(server.pid) as killed:
        server.kill()
        assert killed.has_ended()
    second = executions.start(shell("echo second; while :; do sleep 0.05; done", run_id=2))
    assert executions.run_io.wait_for(2) == ["first", "second"]
    assert executions.outcomes == []
    first.stop(StopCause.CANCELED)
    second.stop(StopCause.CANCELED)
    assert {outcome for _, outcome in executions.wait_for_all()} == {
        Stopped(cause=StopCause.CANCELED)
    }


def test_a_signal_for_the_whole_service_does_not_end_the_supervisors(
    executions: Executions,
) -> None:
    executions.start(
        shell("trap 'echo heard; exit 4' TERM; echo ready; while :; do sleep 0.05; done")
    )
    executions.run_io.wait_for(1)
    for process in supervisors():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
    (command,) = processes_with("echo heard")
    command.terminate()
    outcome = executions.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.error == "exit code 4"


def test_closing_kills_what_runs_and_reports_it(executions: Executions) -> None:
    executions.start(shell("trap '' TERM; echo $$; while :; do sleep 0.05; done"))
    (pid,) = executions.run_io.wait_for(1)
    with watching(int(pid)) as command:
        executions.executor.close()  # type: ignore[attr-defined]
        assert executions.outcomes == [(1, Stopped(cause=StopCause.SHUTDOWN))]
        assert command.has_ended(within_seconds=0)
    assert supervisors() == []


# --- exactly once ---------------------------------------------------------------------------------


def test_a_command_ends_exactly_once_however_many_stop_it_and_whenever(
    executions: Executions,
) -> None:
    count, random = 40, Random(7)
    commands = [
        executions.start(
            shell(random.choice(["exit 0", "exit 3", "sleep 0.01", "sleep 300"]), run_id=n)
        )
        for n in range(count)
    ]

    def stop_all(number: int) -> None:
        order = Random(number).sample(commands, count)
        for execution in order:
            threading.Event().wait(Random(number).random() / 200)
            execution.stop(StopCause.CANCELED, at_once=number % 2 == 0)

    at_once(4, stop_all)
    outcomes = executions.wait_for_all()
    assert len(outcomes) == count
    assert {type(outcome) for _, outcome in outcomes} >= {Stopped}
