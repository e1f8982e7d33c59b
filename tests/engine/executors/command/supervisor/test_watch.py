"""Stopping a command: asked first, killed after the grace; it ends exactly once."""

import threading
from random import Random

import psutil

from support.executions import Executions, eventually, watching
from support.supervised_commands import SHORT_GRACE, Grace, shell
from support.threads import at_once
from tsuzuki.engine.outcome import StopCause, Stopped, Succeeded


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
        execution.stop(StopCause.FENCED)
        assert executions.outcome() == Stopped(cause=StopCause.FENCED)
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
        execution.stop(StopCause.FENCED)
    executions.run_io.wait_for(2)
    execution.stop(StopCause.TIMEOUT, at_once=True)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)
    assert executions.run_io.of("stdout")[1:] == ["asked"]


def test_a_stop_after_the_end_changes_nothing(executions: Executions) -> None:
    execution = executions.start(shell("exit 0"))
    assert executions.outcome() == Succeeded(result={"exit_code": 0})
    execution.stop(StopCause.FENCED)
    execution.stop(StopCause.FENCED, at_once=True)
    executions.start(shell("exit 0", run_id=2))
    assert len(executions.wait_for_all()) == 2


def test_a_process_that_was_halted_is_asked_all_the_same(executions: Executions) -> None:
    execution = executions.start(shell("echo $$; kill -STOP $$; sleep 300"))
    (pid,) = executions.run_io.wait_for(1)
    eventually(lambda: psutil.Process(int(pid)).status() == psutil.STATUS_STOPPED)
    execution.stop(StopCause.FENCED)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)


def test_a_process_in_a_group_of_its_own_is_asked_too(executions: Executions) -> None:
    script = """
    trap 'echo shell' TERM
    timeout 299 sh -c 'trap "echo inner; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    """
    execution = executions.start(shell(script))
    executions.run_io.wait_for(1)
    execution.stop(StopCause.FENCED)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)
    assert sorted(executions.run_io.of("stdout")[1:]) == ["inner", "shell"]


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
            execution.stop(StopCause.FENCED, at_once=number % 2 == 0)

    at_once(4, stop_all)
    outcomes = executions.wait_for_all()
    assert len(outcomes) == count
    assert {type(outcome) for _, outcome in outcomes} >= {Stopped}
