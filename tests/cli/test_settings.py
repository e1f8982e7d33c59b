"""Settings: the current value, its author, and its bounds."""

import json

import pytest

from support.workspace import Workspace
from tsuzuki.cli.settings import ROW, terminal_row
from tsuzuki.model.settings import SETTINGS


def test_the_list_has_every_setting_with_its_default_and_meaning(workspace: Workspace) -> None:
    heading, *lines = workspace.ok("settings", "ls").out.splitlines()
    assert heading.split() == ["KEY", "VALUE", "DEFAULT", "SET", "BY", "DESCRIPTION"]
    assert [line.split()[0] for line in lines] == list(SETTINGS)
    assert lines[0].split()[1:4] == ["10", "10", "-"]
    assert lines[0].endswith(SETTINGS["lease_seconds"].description)


def test_on_a_terminal_the_list_says_who_set_what_only_if_something_is_set() -> None:
    rows = [{"updated_by": None}, {"updated_by": "cli:ada"}]
    assert "SET BY" not in [column.heading for column in terminal_row(rows[:1])]
    assert terminal_row(rows) == ROW


@pytest.mark.parametrize("output", ["json", "jsonl", "plain"])
def test_the_list_is_there_for_machines_too(output: str, workspace: Workspace) -> None:
    out = workspace.ok("settings", "ls", "-o", output).out
    if output == "plain":
        assert out.splitlines()[0].split("\t")[:4] == ["lease_seconds", "10.0", "10.0", ""]
        return
    rows = json.loads(out) if output == "json" else [json.loads(row) for row in out.splitlines()]
    assert [row["key"] for row in rows] == list(SETTINGS)
    assert rows[0]["value"] == 10.0


def test_one_setting_in_plain_is_its_value_and_nothing_else(workspace: Workspace) -> None:
    ended = workspace.ok("settings", "get", "max_orphans", "-o", "plain")
    assert (ended.out, ended.err) == ("5\n", "")


def test_one_setting_is_shown_with_its_bounds(workspace: Workspace) -> None:
    out = workspace.ok("settings", "get", "worker_ttl_seconds").out
    assert "MINIMUM      0.5" in out
    assert "MAXIMUM      3600" in out
    assert workspace.data("settings", "get", "worker_ttl_seconds")["updated_by"] is None


def test_a_change_tells_the_old_and_the_new_value_and_is_remembered(workspace: Workspace) -> None:
    ended = workspace.ok("settings", "set", "worker_ttl_seconds", "12")
    assert (ended.out, ended.err) == ("", "worker_ttl_seconds: 6 → 12\n")
    setting = workspace.data("settings", "get", "worker_ttl_seconds")
    assert setting["value"] == 12.0
    assert setting["updated_by"].startswith("cli:")
    assert setting["updated_at"].endswith("Z")


def test_a_machine_reads_the_setting_as_it_is_after_the_change(workspace: Workspace) -> None:
    assert workspace.data("settings", "set", "max_orphans", "9")["value"] == 9
    assert workspace.ok("settings", "set", "max_orphans", "8", "-o", "plain").out == "8\n"
    assert workspace.data("settings", "reset", "max_orphans")["value"] == 5


def test_a_reset_gives_the_default_back(workspace: Workspace) -> None:
    workspace.ok("settings", "set", "lease_seconds", "20")
    assert workspace.ok("settings", "reset", "lease_seconds").err == "lease_seconds: 20 → 10\n"
    setting = workspace.data("settings", "get", "lease_seconds")
    assert (setting["value"], setting["updated_by"]) == (10.0, None)


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ("get lease_second", 4, "setting_unknown"),
        ("set lease_second 5", 4, "setting_unknown"),
        ("reset lease_second", 4, "setting_unknown"),
        ("set lease_seconds soon", 2, "setting_value"),
        ("set lease_seconds 0", 2, "setting_value"),
        ("set max_orphans 1.5", 2, "setting_value"),
        ("set lease_seconds 4", 2, "setting_conflict"),
        ("set lease_seconds", 2, "usage"),
        ("get", 2, "usage"),
    ],
)
def test_what_is_unknown_or_unsafe_is_refused_and_changes_nothing(
    words: str, code: int, error: str, workspace: Workspace
) -> None:
    before = workspace.content()
    ended = workspace.run("settings", *words.split(), "-o", "json")
    assert (ended.code, ended.error["code"]) == (code, error)
    assert ended.error["hint"]
    assert workspace.content() == before


def test_an_unknown_setting_is_answered_with_the_nearest_one(workspace: Workspace) -> None:
    hint = workspace.run("settings", "get", "lease_second", "-o", "json").error["hint"]
    assert hint.startswith('Did you mean "lease_seconds"?')


def test_settings_are_the_same_on_either_database(workspace: Workspace, database_url: str) -> None:
    here = {"TSUZUKI_DATABASE_URL": database_url}
    workspace.ok("settings", "set", "poll_interval_seconds", "0.5", **here)
    assert workspace.data("settings", "get", "poll_interval_seconds", **here)["value"] == 0.5
    assert workspace.data("settings", "get", "poll_interval_seconds")["value"] == 1.0
