"""`tsuzuki run failures`, typed as a person would."""

import sys

import pytest

from support.workspace import Workspace


@pytest.fixture
def failed(workspace: Workspace) -> Workspace:
    """Two jobs that failed for the same cause."""
    workspace.ok("job", "disable", "hello")
    for name in ("bad", "worse"):
        workspace.ok("job", "add", name, "--", "false")
        workspace.ok("job", "run", name)
    assert workspace.run("run-due", "--quiet").code == 1
    return workspace


def test_failures_are_listed_shown_acknowledged_and_retried_by_cause(failed: Workspace) -> None:
    (group,) = failed.data("run", "failures", "ls")
    assert (group["failures"], group["jobs"], group["is_open"]) == (2, 2, True)
    shown = failed.data("run", "failures", "show", group["id"])
    assert (sorted(shown["job_names"]), shown["run_ids"]) == (["bad", "worse"], [2, 1])
    assert "exit code" in failed.ok("run", "failures", "ls").out
    acknowledged = failed.data("run", "failures", "ack", group["id"])
    assert (acknowledged["is_open"], acknowledged["acknowledged_run_id"]) == (False, 2)
    assert failed.run("run", "failures", "ack", group["id"]).code == 6
    assert failed.data("run", "failures", "ls") == []
    assert len(failed.data("run", "failures", "ls", "--acknowledged")) == 1
    preview = failed.data("run", "failures", "retry", group["id"], "--dry-run")
    assert (preview["matched"], len(failed.data("run", "ls"))) == (2, 2)
    done = failed.data("run", "failures", "retry", group["id"], "--yes", "--quiet")
    assert (done["state"], done["done"]) == ("done", 2)


def test_unrelated_exceptions_are_groups_of_their_own_across_jobs(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    raised = {
        "import": "import nosuch",
        "key": "{}['customer_id']",
        "value": "int('x')",
        "value-too": "print(1)\nint('x')",
    }
    for name, code in raised.items():
        workspace.ok("job", "add", name, "--", sys.executable, "-c", code)
        workspace.ok("job", "run", name)
    workspace.run("run-due", "--quiet")
    groups = workspace.data("run", "failures", "ls")
    assert {group["signature"]: group["jobs"] for group in groups} == {
        "ModuleNotFoundError: No module named 'nosuch'": 1,
        "KeyError: 'customer_id'": 1,
        "ValueError: invalid literal for int() with base <n>: 'x'": 2,
    }


def test_an_unknown_cause_is_told(failed: Workspace) -> None:
    for words in (["show"], ["ack"], ["retry", "--yes"]):
        refused = failed.run("run", "failures", *words, "nothing")
        assert (refused.code, "tsuzuki run failures ls" in refused.err) == (4, True), refused.err
