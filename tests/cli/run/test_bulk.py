"""`tsuzuki run bulk`, typed as a person would."""

import pytest

from support.workspace import Workspace


@pytest.fixture
def failed(workspace: Workspace) -> Workspace:
    """Three runs of one job that failed."""
    workspace.ok("job", "disable", "hello")
    workspace.ok("job", "add", "bad", "--", "false")
    for _ in range(3):
        workspace.ok("job", "run", "bad")
    assert workspace.run("run-due", "--quiet").code == 1
    return workspace


def test_a_dry_run_counts_and_changes_nothing(failed: Workspace) -> None:
    preview = failed.data("run", "bulk", "retry", "--job", "bad", "--dry-run")
    assert (preview["matched"], len(preview["samples"]), preview["state"]) == (3, 3, "previewed")
    assert len(failed.data("run", "ls")) == 3
    shown = failed.ok("run", "bulk", "retry", "--dry-run")
    assert "3 runs match." in shown.err


def test_a_dry_run_does_not_apply_the_file(failed: Workspace) -> None:
    failed.append("\n  later:\n    command: x\n")
    failed.ok("run", "bulk", "retry", "--dry-run")
    (group, *_) = failed.data("run", "failures", "ls")
    failed.ok("run", "failures", "retry", group["id"], "--dry-run")
    states = {job["name"]: job["sync_state"] for job in failed.data("job", "ls")}
    assert states["later"] == "not applied"


def test_without_yes_and_without_a_terminal_nothing_happens(failed: Workspace) -> None:
    refused = failed.run("run", "bulk", "retry")
    assert (refused.code, "retry 3 runs" in refused.err) == (2, True)
    assert len(failed.data("run", "ls")) == 3


def test_retry_and_cancel_of_all_that_match(failed: Workspace) -> None:
    done = failed.data("run", "bulk", "retry", "--yes", "--quiet")
    assert (done["state"], done["done"]) == ("done", 3)
    shown = failed.data("run", "bulk", "show", str(done["id"]))
    assert [one["result"] for one in shown["results"]] == ["retried"] * 3
    waiting = failed.data("run", "ls", "--state", "PENDING")
    assert {run["retry_of"] for run in waiting} == {one["run_id"] for one in shown["results"]}
    canceled = failed.data("run", "bulk", "cancel", "--state", "PENDING", "--yes", "--quiet")
    assert canceled["done"] == 3
    assert failed.data("run", "ls", "--state", "PENDING") == []
    assert [one["verb"] for one in failed.data("run", "bulk", "ls")] == ["cancel", "retry"]


def test_in_the_background_it_waits_for_an_engine_and_can_be_stopped(failed: Workspace) -> None:
    asked = failed.data("run", "bulk", "retry", "--yes", "--background")
    assert asked["state"] == "confirmed"
    assert "0 of 3" in failed.ok("run", "bulk", "stop", str(asked["id"])).err
    again = failed.run("run", "bulk", "stop", str(asked["id"]), "-o", "json")
    assert (again.code, again.error["code"]) == (6, "bulk_not_running")
    assert f"tsuzuki run bulk show {asked['id']}" in again.error["hint"]
    asked = failed.data("run", "bulk", "retry", "--yes", "--background")
    assert failed.data("run", "bulk", "stop", str(asked["id"]))["id"] == asked["id"]


def test_a_group_of_failures_that_is_not_there_matches_nothing(failed: Workspace) -> None:
    preview = failed.data("run", "bulk", "retry", "--failure-group", "none", "--dry-run")
    assert (preview["matched"], preview["filter"]["failure_group"]) == (0, "none")


def test_nothing_that_matches_is_said(failed: Workspace) -> None:
    assert "0 runs match." in failed.ok("run", "bulk", "cancel", "--yes").err


def test_a_state_that_cannot_be_acted_on_names_the_others(failed: Workspace) -> None:
    refused = failed.run("run", "bulk", "cancel", "--state", "FAILED", "--yes")
    assert (refused.code, "PENDING" in refused.err) == (2, True)
