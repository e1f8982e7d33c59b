"""A codeindex job builds each of its roots, and fails in the end if one could not be built."""

from pathlib import Path
from typing import Any

import pytest

from support.workspace import Workspace
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE

JOBS = """
version: 1
jobs:
  code:
    type: codeindex
    roots: [tree, {other}]
    max_retries: 0
"""


@pytest.fixture
def workspace(
    tmp_path: Path,
    tree: Path,
    index_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Workspace:
    monkeypatch.setenv(FOLDER_VARIABLE, str(index_folder))
    return Workspace(tmp_path, capsys)


def run_job(workspace: Workspace, other: str) -> Any:
    workspace.file.write_text(JOBS.format(other=other))
    workspace.ok("job", "apply")
    asked = workspace.ok("job", "run", "code", "-o", "json").data
    workspace.run("run-due", "-o", "json")
    return workspace.ok("run", "show", str(asked["run_id"]), "-o", "json").data


def test_every_root_is_built(workspace: Workspace, tree: Path) -> None:
    shown = run_job(workspace, "tree/shop")
    assert shown["state"] == "SUCCEEDED", shown
    first, second = shown["result"]["roots"]
    assert (first["root"], first["job"]["result"]["updatedFiles"]) == ("tree", 3)
    assert (second["root"], second["job"]["result"]["updatedFiles"]) == ("tree/shop", 2)


def test_a_root_that_is_missing_fails_the_run_and_not_the_other(workspace: Workspace) -> None:
    shown = run_job(workspace, "nowhere")
    assert shown["state"] == "FAILED"
    first, second = shown["result"]["roots"]
    assert (first["job"]["status"], first["error"]) == ("completed", None)
    assert second["job"] is None
    assert "there is no folder" in second["error"]


def test_a_job_without_roots_is_refused(workspace: Workspace) -> None:
    workspace.file.write_text(JOBS.format(other="x").replace("roots: [tree, x]", "roots: []"))
    assert workspace.run("job", "apply", "-o", "json").code == 3
