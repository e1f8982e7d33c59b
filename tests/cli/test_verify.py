"""`tsuzuki verify` and jobs of `type: verify`: what is missing is named, and ends with 1 or a failed run."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.git_histories import straight
from support.workspace import Workspace

FILE = """\
version: 1
jobs:
  hello: {command: ["true"], schedule: every 1h}
  nightly: {type: verify, parts: [commits, index]}
  wrong: {type: verify, parts: [comits]}
"""


@pytest.fixture
def workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """With a branch that was collected."""
    found = Workspace(tmp_path, capsys)
    found.file.write_text(FILE)
    straight(tmp_path / "served" / "atlas.git", 5)
    found.ok("job", "apply")
    found.ok("commits", "add-target", "served/atlas.git")
    found.ok("commits", "collect")
    return found


def change(workspace: Workspace, statement: str) -> None:
    with closing(sqlite3.connect(workspace.database)) as connection, connection:
        connection.execute(statement)


def test_every_part_is_verified_by_default(workspace: Workspace) -> None:
    found = workspace.data("verify")
    assert [one["part"] for one in found] == ["ticks", "books", "index", "commits", "feeds"]
    assert all(one["ok"] for one in found)
    commits = next(one for one in found if one["part"] == "commits")
    assert (commits["subjects"], commits["compared"], commits["faults"]) == (1, 5, 0)


def test_what_is_missing_is_named_and_the_exit_code_is_1(workspace: Workspace) -> None:
    change(
        workspace,
        "DELETE FROM commits WHERE sha IN (SELECT sha FROM commits ORDER BY sha LIMIT 2)",
    )
    ended = workspace.run("verify", "commits", "--output", "json")
    assert ended.code == 1
    (found,) = ended.data
    assert (found["ok"], found["faults"], found["counts"]) == (False, 2, {"missing": 2})
    (branch,) = found["shown"]
    assert [fault["kind"] for fault in branch["named"]] == ["missing", "missing"]
    table = workspace.run("verify", "commits")
    assert table.code == 1
    assert "FAULTY" in table.out
    for fault in branch["named"]:
        assert fault["name"] in table.err


def test_only_the_named_parts_are_verified(workspace: Workspace) -> None:
    change(workspace, "DELETE FROM commits")
    assert [one["part"] for one in workspace.data("verify", "ticks", "index")] == ["ticks", "index"]


def test_an_unknown_part_and_dates_in_the_wrong_order_are_usage_errors(
    workspace: Workspace,
) -> None:
    assert workspace.run("verify", "comits").code == 2
    dates = ("--since", "2026-11-08", "--until", "2026-11-01")
    ended = workspace.run("verify", "ticks", *dates, "--output", "json")
    assert (ended.code, ended.error["code"]) == (2, "verify_dates")


def test_a_job_verifies_and_its_run_has_the_counts(workspace: Workspace) -> None:
    shown = run_job(workspace, "nightly")
    assert shown["state"] == "SUCCEEDED", shown["error"]
    assert shown["result"]["ok"] is True
    assert [one["part"] for one in shown["result"]["parts"]] == ["commits", "index"]
    assert shown["progress_processed"] == 5


def test_the_run_of_a_job_fails_and_names_what_is_missing(workspace: Workspace) -> None:
    change(workspace, "DELETE FROM commits WHERE sha = (SELECT min(sha) FROM commits)")
    shown = run_job(workspace, "nightly")
    assert (shown["state"], shown["reason"]) == ("FAILED", "handler_failed")
    assert "verification failed: commits: 1 fault in 1 of 1" in shown["error"]
    assert "is not stored" in shown["error"]
    parts = {one["part"]: one for one in shown["result"]["parts"]}
    assert (shown["result"]["ok"], parts["commits"]["faults"], parts["index"]["ok"]) == (
        False,
        1,
        True,
    )


def test_arguments_of_a_run_come_before_the_options_of_its_job(workspace: Workspace) -> None:
    shown = run_job(workspace, "nightly", "--arg", 'parts=["ticks"]')
    assert [one["part"] for one in shown["result"]["parts"]] == ["ticks"]
    refused = run_job(workspace, "nightly", "--arg", "days=0")
    assert refused["state"] == "FAILED"
    assert "invalid run arguments" in refused["error"]


def test_a_job_with_an_unknown_part_fails_and_says_which_there_are(workspace: Workspace) -> None:
    shown = run_job(workspace, "wrong")
    assert shown["state"] == "FAILED"
    assert "unknown part 'comits'" in shown["error"]


def test_options_of_a_job_are_checked_in_the_file(workspace: Workspace) -> None:
    workspace.append("  bad: {type: verify, days: 0, part: ticks}\n")
    ended = workspace.run("config", "check", "--output", "json")
    assert ended.code == 3
    assert "days" in ended.out + ended.err
    assert "part" in ended.out + ended.err


def run_job(workspace: Workspace, name: str, *words: str) -> dict[str, object]:
    started = workspace.ok("job", "run", name, *words, "--output", "json").data
    workspace.run("run-due", "--output", "json")
    shown: dict[str, object] = workspace.data("run", "show", str(started["run_id"]))
    return shown
