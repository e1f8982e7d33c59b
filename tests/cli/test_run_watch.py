"""Watching a run: it ends with the run, or says why the run does not start."""

import os
import signal
from typing import Any

import pytest

from support.forked_program import ForkedProgram
from support.workspace import Workspace, process_environment
from tsuzuki.services.runs import Runs


def test_waiting_too_long_ends_with_124(workspace: Workspace) -> None:
    run_id = str(workspace.data("job", "run", "hello")["run_id"])
    ended = workspace.run("run", "watch", run_id, "--timeout", "0.05", "--output", "json")
    assert ended.code == 124


def test_watching_a_run_that_does_not_start_says_why(workspace: Workspace) -> None:
    watched = workspace.run("job", "run", "hello", "--watch", "--timeout", "3")
    assert watched.code == 124
    assert "No process leads" in watched.err
    assert "tsuzuki up" in watched.err


def test_an_interrupt_without_an_engine_ends_it_at_once_and_the_run_waits(
    workspace: Workspace,
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as told, os.fdopen(writing, "w") as stderr:
        command = ForkedProgram(
            ("job", "run", "hello", "--watch"),
            cwd=workspace.folder,
            env=process_environment({}),
            stderr=stderr,
        )
        assert "Run 1" in told.readline()
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == 130
    assert workspace.data("run", "show", "1")["state"] == "PENDING"


@pytest.mark.parametrize("words", [("job", "run", "hello", "--watch"), ("run", "watch", "1")])
def test_interrupted_it_says_that_the_run_goes_on_and_how_to_stop_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def interrupt(*_arguments: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    if words[0] == "run":
        workspace.ok("job", "run", "hello")
    monkeypatch.setattr(Runs, "wait", interrupt)
    ended = workspace.run(*words)
    assert ended.code == 130
    assert "Run 1 goes on. Watch it again with: tsuzuki run watch 1" in ended.err
    assert "Stop it with: tsuzuki run cancel 1" in ended.err
    assert workspace.data("run", "show", "1")["state"] == "PENDING"
