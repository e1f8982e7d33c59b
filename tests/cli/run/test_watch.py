"""Watching a run: it ends with the run, or says why the run does not start."""

import json
import os
import re
import signal
from dataclasses import replace
from typing import Any

import pytest

from support.executions import RUN
from support.forked_program import ForkedProgram
from support.workspace import Workspace, process_environment
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.run import watch as run_watch
from tsuzuki.cli.run.watch import ProgressBar
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs


def test_waiting_too_long_ends_with_124(workspace: Workspace) -> None:
    run_id = str(workspace.data("job", "run", "hello")["run_id"])
    ended = workspace.run("run", "watch", run_id, "--timeout", "0.05", "--output", "json")
    assert ended.code == 124


def test_watching_a_run_that_does_not_start_says_why(workspace: Workspace) -> None:
    watched = workspace.run("job", "run", "hello", "--watch", "--timeout", "3")
    assert watched.code == 124
    assert "No leader" in watched.err
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


def test_a_person_who_starts_a_run_is_told_what_comes_next(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = workspace.ok("job", "run", "hello")
    assert (started.out, started.err) == (
        "Started run 1. Follow it with: tsuzuki run watch 1\n",
        "",
    )
    monkeypatch.setattr(run_watch, "is_terminal", lambda _stream: True)
    assert "Start one with: tsuzuki up" in workspace.ok("job", "run", "hello").err


def test_a_watch_follows_the_retries(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")  # a tick of its own would take the number of the retry
    workspace.ok("job", "add", "flaky", "--max-retries", "1", "--", "false")
    workspace.ok("job", "run", "flaky")
    workspace.run("run-due")
    waiting = workspace.run("run", "watch", "1", "--timeout", "0.05")
    assert waiting.code == 124
    assert re.search(r"Run 1 .*FAILED.*\nRetrying at .* as run 2", waiting.err)
    workspace.ok("run", "cancel", "2")
    ended = workspace.run("run", "watch", "1", "--output", "json")
    assert (ended.code, json.loads(ended.out)["id"]) == (1, 2)


def test_the_exit_code_of_a_watch_is_that_of_the_last_attempt(workspace: Workspace) -> None:
    second = "test -e done || { echo first; touch done; exit 1; }; echo the second"
    workspace.ok("job", "add", "second", "--max-retries", "1", "--", "sh", "-c", second)
    workspace.ok("job", "update", "second", "--set", "backoff={initial: 0.01, jitter: 0}")
    workspace.ok("job", "disable", "hello")
    workspace.ok("job", "run", "second")
    workspace.run("run-due")
    workspace.run("run-due")
    watched = workspace.run("run", "watch", "1")
    assert watched.code == 0, watched.err
    assert (
        watched.err.index("first\n")
        < watched.err.index("as run 2")
        < watched.err.index("the second\n")
    )


def test_a_run_without_progress_has_no_count_and_leaves_no_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressBar(Invocation(environ={}, no_color=True)) as bar:
        bar.show(RUN)
        bar.show(replace(RUN, state=RunState.SUCCEEDED))
    shown = capsys.readouterr().err
    assert "?" not in shown.replace("[?25", "")
    assert "succeeded" not in shown
    with ProgressBar(Invocation(environ={}, no_color=True)) as bar:
        bar.show(replace(RUN, state=RunState.SUCCEEDED, progress_processed=3, progress_total=4))
    assert "3/4" in capsys.readouterr().err


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
    assert "Run 1 continues. Watch it again with: tsuzuki run watch 1" in ended.err
    assert "Cancel it with: tsuzuki run cancel 1" in ended.err
    assert workspace.data("run", "show", "1")["state"] == "PENDING"
