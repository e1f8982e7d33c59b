"""The audit log: who changed what, from which value to which."""

import json

import pytest

from support.workspace import Workspace


@pytest.fixture
def changed(workspace: Workspace) -> Workspace:
    """A workspace with four changes: two by the person here, two through the API and at the start."""
    workspace.define("made", {"command": ["true"]})
    workspace.ok("settings", "set", "lease_seconds", "20")
    workspace.ok(*"job update hello --timeout 5m --set backoff.initial=5s --disabled".split())
    return workspace


def test_changes_are_listed_newest_first_with_their_values(changed: Workspace) -> None:
    heading, update, setting, made, hello = changed.ok("audit", "ls").out.splitlines()
    assert heading.split() == ["ID", "AT", "ACTOR", "ACTION", "OBJECT", "CHANGES"]
    assert "  job.change   hello          " in update
    assert "enabled: yes → no" in update
    assert "retry.initial_seconds: 10 → 5" in update
    assert "timeout_seconds: - → 300" in update
    assert setting.endswith("  setting.set  lease_seconds  10 → 20")
    assert "  api:bob  " in made.replace("api:bob ", "api:bob  ")
    assert hello.endswith("  job.add      hello          -")


def test_every_format_has_the_same_changes(changed: Workspace) -> None:
    rows = changed.data("audit", "ls")
    lines = changed.ok("audit", "ls", "-o", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == rows
    plain = changed.ok("audit", "ls", "-o", "plain").out.splitlines()
    assert [line.split("\t")[0] for line in plain] == [str(row["id"]) for row in rows]
    assert rows[1]["before"] == 10.0
    assert rows[1]["after"] == 20.0
    assert rows[0]["before"]["enabled"] is True


@pytest.mark.parametrize(
    ("words", "objects"),
    [
        ("--type job", ["hello", "made", "hello"]),
        ("--type setting", ["lease_seconds"]),
        ("--object hello", ["hello", "hello"]),
        ("--actor api:bob", ["made"]),
        ("--actor unknown", []),
        ("--type token", []),
        ("--limit 1", ["hello"]),
        ("--before-id 3", ["made", "hello"]),
        ("--type job --object hello --limit 1 --before-id 4", ["hello"]),
    ],
)
def test_changes_can_be_picked(words: str, objects: list[str], changed: Workspace) -> None:
    found = changed.data("audit", "ls", *words.split())
    assert [entry["object_id"] for entry in found] == objects


def test_the_way_to_older_changes_is_told_only_if_there_are_any(changed: Workspace) -> None:
    ended = changed.ok("audit", "ls", "--limit", "3")
    assert ended.err == "Show older changes with: tsuzuki audit ls --before-id 2\n"
    assert changed.ok("audit", "ls", "--limit", "4").err == ""
    assert len(changed.ok("audit", "ls", "--before-id", "2").out.splitlines()) == 2


def test_no_changes_are_told(changed: Workspace) -> None:
    ended = changed.ok("audit", "ls", "--actor", "unknown")
    assert (ended.out, ended.err) == ("", "no changes found\n")


@pytest.mark.parametrize("words", ["--type planet", "--limit 0", "--limit 1001", "--before-id x"])
def test_a_wrong_choice_is_a_usage_error(words: str, workspace: Workspace) -> None:
    assert workspace.run("audit", "ls", *words.split()).code == 2


def test_a_change_that_is_refused_leaves_no_trace(changed: Workspace) -> None:
    before = changed.data("audit", "ls")
    assert changed.run("settings", "set", "lease_seconds", "0").code == 2
    assert changed.run(*"job update hello --set priority=high".split()).code == 3
    assert changed.run(*"job rm unknown --yes".split()).code == 4
    assert changed.data("audit", "ls") == before


def test_a_change_of_a_run_names_its_job(workspace: Workspace) -> None:
    workspace.ok("job", "run", "hello")
    workspace.ok("run", "cancel", "1")
    newest = workspace.data("audit", "ls", "--type", "run", "--since", "1h")[0]
    assert (newest["object_id"], newest["job"]) == ("1", "hello")
    assert "1 (hello)" in workspace.ok("audit", "ls").out
    assert workspace.data("audit", "ls", "--since", "2999-01-01") == []
