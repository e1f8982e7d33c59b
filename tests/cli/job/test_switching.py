"""Switching jobs on and off, and removing them: all that are named, or none."""

from support.workspace import Workspace
from tsuzuki.config.starter_file import starter_text
from tsuzuki.wiring.collectors import installed_collectors

STARTER = starter_text(installed_collectors().kinds)


def test_a_job_that_is_off_is_not_due_until_it_is_on_again(workspace: Workspace) -> None:
    ended = workspace.ok("job", "disable", "hello")
    assert ended.out.splitlines()[1].startswith("hello  off ")
    assert workspace.job("hello")["next_at"] is None
    (switched,) = workspace.data("job", "enable", "hello")
    assert switched["enabled"] is True
    assert switched["next_at"] is not None
    assert workspace.file.read_text() == STARTER.replace(
        "schedule: {every: 10m}", "schedule: {every: 10m}\n    enabled: true"
    )


def test_several_jobs_are_switched_together_or_not_at_all(workspace: Workspace) -> None:
    workspace.ok(*"job add other -- x".split())
    before = workspace.content()
    assert workspace.run("job", "disable", "hello", "unknown", "other").code == 4
    assert workspace.content() == before
    plain = workspace.ok("job", "disable", "hello", "other", "hello", "-o", "plain").out
    assert [line.split("\t")[:2] for line in plain.splitlines()] == [
        ["hello", "false"],
        ["other", "false"],
    ]


def test_a_job_is_removed_only_on_demand(workspace: Workspace) -> None:
    before = workspace.content()
    ended = workspace.run("job", "rm", "hello", "-o", "json")
    assert (ended.code, ended.error["code"]) == (2, "not_confirmed")
    assert "delete the job 'hello'" in ended.error["message"]
    assert workspace.content() == before
    assert workspace.ok("job", "rm", "hello", "--yes").err == "Deleted 'hello'.\n"
    assert workspace.data("job", "ls") == []


def test_jobs_are_removed_together_or_not_at_all(workspace: Workspace) -> None:
    workspace.ok(*"job add other -- x".split())
    before = workspace.content()
    assert workspace.run("job", "rm", "hello", "unknown", "--yes").code == 4
    assert workspace.content() == before
    removed = workspace.data("job", "rm", "hello", "other", "--yes")
    assert [job["name"] for job in removed] == ["hello", "other"]
    workspace.ok(*"job add other -- x".split())
    assert workspace.ok("job", "rm", "other", "--yes", "-o", "plain").out == "other\n"


def test_a_job_of_the_database_is_switched_and_removed_there(workspace: Workspace) -> None:
    workspace.define("made", {"command": ["true"]})
    assert workspace.run(*"job update made --every 1h".split()).code == 6
    assert workspace.data("job", "disable", "made")[0]["enabled"] is False
    workspace.ok("job", "rm", "made", "--yes")
    assert workspace.file.read_text() == STARTER
