"""Whichever process is killed, worker, server or supervisor: no process of a command is left."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import SystemRandom

import psutil
import pytest

from support.executions import Executions, watching
from support.supervised_commands import TREE, processes_with, shell, supervisors
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.engine.outcome import Failed, StopCause, Stopped

TESTS = Path(__file__).parents[4]
GROUP = "for n in 1 2 3 4; do sh -c 'echo $$; exec sleep 300' & done; echo $$;"
ENDLESS = "trap '' TERM; while :; do sleep 0.05; done"

SLOW_TO_DIE = """exec python3 -c '
import os, signal
if os.fork():
    signal.pause()
os.setsid()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
child = os.fork()
if child == 0:
    signal.alarm(60)
    while True:
        pass
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print(os.getpid(), *[child] * 4, sep="\\n", flush=True)
signal.pause()
'"""
"""In a session of its own, a process of the lowest priority whose busy child keeps it from running, and so from ending
when it is killed."""


@contextmanager
def worker_with(script: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A worker that runs this command, and the five process ids that the command prints."""
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "support.worker_process",
            json.dumps({"argv": ["sh", "-c", script]}),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    ) as worker:
        assert worker.stdout is not None
        yield worker, [int(worker.stdout.readline()) for _ in range(5)]


def server_and_supervisor(worker: int) -> tuple[psutil.Process, psutil.Process]:
    server, supervisor = sorted(supervisors(below=worker), key=lambda one: one.ppid() != worker)
    return server, supervisor


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_whole_tree_dies_with_its_worker(number: signal.Signals) -> None:
    with worker_with(TREE + ENDLESS) as (worker, pids), ExitStack() as stack:
        beside = [process.pid for process in server_and_supervisor(worker.pid)]
        processes = [stack.enter_context(watching(pid)) for pid in (*pids, *beside)]
        worker.send_signal(number)
        assert all(process.has_ended() for process in processes)


def test_a_child_dies_after_its_parent_when_worker_and_supervisor_are_killed_at_once() -> None:
    """The server notices both at the same time, and stays until the parent is dead and it can kill the child."""
    with worker_with(SLOW_TO_DIE) as (worker, pids), ExitStack() as stack:
        server, supervisor = server_and_supervisor(worker.pid)
        processes = [stack.enter_context(watching(pid)) for pid in (*pids, server.pid)]
        server.suspend()
        supervisor.kill()
        worker.kill()
        worker.wait()
        server.resume()
        assert all(process.has_ended() for process in processes)


def test_the_whole_tree_dies_when_a_worker_is_killed_while_its_supervisors_are_stopped() -> None:
    with worker_with(TREE + ENDLESS) as (worker, pids), ExitStack() as stack:
        beside = server_and_supervisor(worker.pid)
        processes = [
            stack.enter_context(watching(pid)) for pid in (*pids, *(one.pid for one in beside))
        ]
        for process in (psutil.Process(worker.pid), *beside):
            process.suspend()
        worker.kill()
        assert all(process.has_ended() for process in processes)


def test_the_group_of_a_command_dies_when_worker_server_and_supervisor_are_killed() -> None:
    """The kernel does it: no process is left that could."""
    with worker_with(GROUP + ENDLESS) as (worker, pids), ExitStack() as stack:
        processes = [stack.enter_context(watching(pid)) for pid in pids]
        for process in (*server_and_supervisor(worker.pid), worker):
            process.kill()
        assert all(process.has_ended() for process in processes)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("rounds", [14, pytest.param(1000, marks=pytest.mark.full)])
def test_no_process_is_left_whatever_is_killed_and_whenever(rounds: int) -> None:
    seed = SystemRandom().randrange(1_000_000)
    left = subprocess.run(
        [sys.executable, "-m", "support.kill_rounds", str(rounds), str(seed)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert left.stdout == "", f"seed {seed}"


def test_a_command_dies_with_its_supervisor_and_the_run_says_so(executions: Executions) -> None:
    executions.start(shell(TREE + "sleep 300"))
    with ExitStack() as stack:
        tree = [stack.enter_context(watching(int(pid))) for pid in executions.run_io.wait_for(5)]
        server, supervisor = sorted(supervisors(), key=lambda process: process.create_time())
        assert supervisor.ppid() == server.pid
        supervisor.kill()
        outcome = executions.outcome()
        assert isinstance(outcome, Failed)
        assert outcome.error == "the command's supervisor was killed, and the command with it"
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
    first.stop(StopCause.FENCED)
    second.stop(StopCause.FENCED)
    assert {outcome for _, outcome in executions.wait_for_all()} == {
        Stopped(cause=StopCause.FENCED)
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
    # The shell is the oldest: what it has just forked still has its command line.
    command = min(processes_with("echo heard"), key=lambda process: process.create_time())
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


def test_supervisors_and_commands_keep_a_lock_of_their_worker(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        executor = CommandExecutor(
            expand=lambda text, _: text,
            base_folder=tmp_path,
            kill_grace_seconds=lambda: 60.0,
            process_lock=lock.fileno,
        )
        executions = Executions(executor)
        executions.start(shell("echo $$; exec sleep 300"))
        (pid,) = map(int, executions.run_io.wait_for(1))
        holders = [pid, *(one.pid for one in supervisors())]
    assert len(holders) == 3
    assert all(holds(pid, tmp_path / "lock") for pid in holders)
    with (tmp_path / "lock").open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    executor.close()


def holds(pid: int, path: Path) -> bool:
    """Whether the process has the file open."""
    return any(link.resolve() == path for link in Path(f"/proc/{pid}/fd").iterdir())
