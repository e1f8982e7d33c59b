"""Handing a command over to its supervisor: whole, and without a descriptor or file that is left."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from support.commands import Commands
from support.executions import a_task, open_descriptors
from tsuzuki.engine.executors.command.supervisor.processes import INHERITED_DESCRIPTOR_MIN
from tsuzuki.engine.outcome import Failed
from tsuzuki.model.states import Reason


def test_an_ended_command_leaves_no_descriptor_open(commands: Commands) -> None:
    commands.run("true")
    before = open_descriptors()
    for _ in range(5):
        commands.run("sh", "-c", "echo hello; exit 1")
        commands.run("no-such-program")
    assert open_descriptors() == before


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


HUGE = {"x": "y" * 100_000}


def test_a_worker_without_descriptors_fails_the_run_and_keeps_nothing_of_it(
    commands: Commands, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(flags: int) -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    commands.run("true")
    before = open_descriptors()
    monkeypatch.setattr(os, "pipe2", no_more)
    outcome, _ = commands.run(task=a_task("command", {"argv": ["true"]}, arguments=HUGE))
    assert outcome == failed("cannot start the command: Too many open files")
    assert open_descriptors() == before
    assert list(scratch.iterdir()) == []


def test_a_command_has_no_input_no_terminal_and_of_our_files_only_its_kill_switch(
    commands: Commands,
) -> None:
    script = (
        "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid(), "
        "[n for n in range(1000) if os.path.exists(f'/proc/self/fd/{n}')])"
    )
    _, run_io = commands.run(sys.executable, "-c", script)
    assert run_io.of("stdout") == [f"'' True [0, 1, 2, {INHERITED_DESCRIPTOR_MIN}]"]


def test_the_document_handed_over_survives_any_text(commands: Commands) -> None:
    words = ['"', "\\", "\n", "'", "\u2028", "🎈", json.dumps({"a": "b"})]
    _, run_io = commands.run(
        sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words
    )
    assert json.loads(run_io.of("stdout")[0]) == words
