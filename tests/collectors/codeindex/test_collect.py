"""A codeindex job builds each of its roots, and fails in the end if one could not be built."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.workspace import Workspace
from tsuzuki.collectors.codeindex.builds import builder as build_module
from tsuzuki.collectors.codeindex.collect import collect
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.tree.scan import Scan
from tsuzuki.engine.run_context import RunContext, RunStopped
from tsuzuki.model.clock import SystemClock
from tsuzuki.wiring.collector import CollectorContext

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


def run_job(workspace: Workspace, other: str, options: str = "") -> Any:
    """Run the job, with other `options` in place of its roots."""
    roots = f"roots: [tree, {other}]"
    workspace.file.write_text(JOBS.format(other=other).replace(roots, options or roots))
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
    assert "does not exist" in second["error"]


def test_a_job_without_roots_is_refused(workspace: Workspace) -> None:
    workspace.file.write_text(JOBS.format(other="x").replace("roots: [tree, x]", "roots: []"))
    assert workspace.run("job", "apply", "-o", "json").code == 3


def test_a_job_has_language_servers(workspace: Workspace, tree: Path) -> None:
    roots = "roots: [tree, tree/shop]"
    server = [sys.executable, "-I", str(Path(__file__).with_name("lsp_server.py")), "good"]
    workspace.file.write_text(
        JOBS.format(other="tree/shop").replace(roots, f"{roots}\n    lsp: {{pyton: x}}")
    )
    refused = workspace.run("job", "apply", "-o", "json")
    assert refused.code == 3
    assert "unknown language 'pyton'" in refused.err
    options = f"{roots}\n    lsp: {{python: {json.dumps(server)}}}"
    shown = run_job(workspace, "tree/shop", options)
    assert shown["state"] == "SUCCEEDED", shown
    extractors = Builds().status(tree).extractors
    assert [*extractors.values()] == [3]
    assert next(iter(extractors)).startswith("lsp: ")


class StoppedRun:
    """A run that is asked to stop while its first build runs."""

    options = {"roots": ["tree"]}  # noqa: RUF012 -- never changed
    is_building = False

    def log(self, message: str) -> None: ...

    def progress(self, processed: int, total: int | None) -> None:
        self.is_building = True

    def wait(self, seconds: float) -> bool:
        return True

    def raise_if_cancelled(self) -> None:
        if self.is_building:
            raise RunStopped


def test_a_run_that_is_stopped_cancels_its_build(
    tree: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan_without_end(root: Path, *, on_tick: Callable[[], None], **_options: object) -> Scan:
        while True:
            on_tick()

    monkeypatch.setattr(build_module, "scan_tree", scan_without_end)
    monkeypatch.setenv(FOLDER_VARIABLE, str(index_folder))
    context = SimpleNamespace(database=SimpleNamespace(clock=SystemClock()), workspace=tree.parent)
    with pytest.raises(RunStopped):
        collect(cast("CollectorContext", context), cast("RunContext", StoppedRun()))
    job = Builds(environ={FOLDER_VARIABLE: str(index_folder)}).status(tree).job
    assert job is not None
    assert (job.status, job.error) == ("failed", "cancelled")
