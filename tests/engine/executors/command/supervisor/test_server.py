"""Whichever process is killed, worker, server or supervisor: no process of a command is left."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.executions import Executions, watching
from support.supervised_commands import TREE, processes_with, shell, supervisors
from tsuzuki.engine.outcome import Failed, StopCause, Stopped


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_whole_tree_dies_with_its_worker(number: signal.Signals) -> None:
    options = {"argv": ["sh", "-c", TREE + "trap '' TERM; while :; do sleep 0.05; done"]}
    tests = Path(__file__).parents[4]
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
