"""Watching a run: it ends with the run, or says why the run does not start."""

from support.workspace import Workspace


def test_waiting_too_long_ends_with_124(workspace: Workspace) -> None:
    run_id = str(workspace.data("job", "run", "hello")["run_id"])
    ended = workspace.run("run", "watch", run_id, "--timeout", "0.05", "--output", "json")
    assert ended.code == 124


def test_watching_a_run_that_does_not_start_says_why(workspace: Workspace) -> None:
    watched = workspace.run("job", "run", "hello", "--watch", "--timeout", "3")
    assert watched.code == 124
    assert "No process leads" in watched.err
    assert "tsuzuki up" in watched.err
