"""Edits of a job change its lines, and the file says nothing else differently."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from config.commented_file import FILE, changed, data
from tsuzuki.config.edit import ConfigEditor
from tsuzuki.model.errors import ConfigurationError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text(FILE)
    return path


def test_a_value_is_changed_in_place_and_its_comment_stays(path: Path) -> None:
    ConfigEditor(path).update_job("hello", {"timeout": "1h"})
    assert changed(path) == (["    timeout: 10m  # plenty"], ["    timeout: 1h  # plenty"])


def test_a_new_key_goes_behind_those_of_its_job(path: Path) -> None:
    ConfigEditor(path).update_job("hello", {"max_retries": 3, "tags": ["gpu"]})
    assert changed(path) == ([], ["    max_retries: 3", "    tags: [gpu]"])
    assert (
        "    # max_retries: 3\n    max_retries: 3\n    tags: [gpu]\n\n  # About" in path.read_text()
    )


def test_a_mapping_is_changed_key_by_key(path: Path) -> None:
    ConfigEditor(path).update_job(
        "hello", {"schedule": {"daily_at": "10:00", "timezone": "Asia/Tokyo"}}
    )
    assert changed(path) == (
        ['      daily_at: "09:00"   # before work'],
        ['      daily_at: "10:00"   # before work'],
    )


def test_a_mapping_may_change_all_its_keys(path: Path) -> None:
    ConfigEditor(path).update_job("hello", {"schedule": {"every": "10m"}})
    assert changed(path) == (
        ['      daily_at: "09:00"   # before work', "      timezone: Asia/Tokyo"],
        ["      every: 10m"],
    )
    assert "      # In the morning.\n" in path.read_text()


def test_a_block_list_is_changed_item_by_item(path: Path) -> None:
    ConfigEditor(path).update_job("backup", {"command": ["pg_dump", "--one"]})
    assert changed(path) == (["    - --all"], ['    - "--one"'])


LIST = """\
jobs:
  it:
    command: x
    tags:
      # all of them
      - a  # why a
      # about b
      - b
        # more of b
      - c  # why c
    timeout: 1m
"""


@pytest.mark.parametrize(
    ("tags", "gone", "came"),
    [
        (["a", "b", "c", "d"], [], ["      - d"]),
        (["z", "a", "b", "c"], [], ["      - z"]),
        (["a", "z", "b", "c"], [], ["      - z"]),
        (["a", "c"], ["      - b", "        # more of b"], []),
        (["b"], ["      - a  # why a", "      - c  # why c"], []),
        (["c", "a"], ["      - b", "        # more of b"], []),
        (["c", "b", "a"], [], []),
        (["a", "z", "c"], ["      - b", "        # more of b"], ["      - z"]),
    ],
)
def test_the_items_of_a_list_that_stay_keep_their_comments(
    path: Path, tags: list[str], gone: list[str], came: list[str]
) -> None:
    path.write_text(LIST)
    ConfigEditor(path).update_job("it", {"tags": tags})
    assert data(path)["jobs"]["it"]["tags"] == tags
    assert changed(path, LIST) == (gone, came)


def test_a_list_that_ends_the_file_without_a_line_end_is_edited(path: Path) -> None:
    path.write_text("jobs:\n  it:\n    command: x\n    tags:\n    - a")
    ConfigEditor(path).update_job("it", {"tags": ["a", "b"]})
    ConfigEditor(path).update_job("it", {"tags": ["b"]})
    assert path.read_text().rstrip() == "jobs:\n  it:\n    command: x\n    tags:\n    - b"


def test_comments_in_braces_outlive_what_replaces_them(path: Path) -> None:
    path.write_text(
        "jobs:\n  it:\n    command: x\n"
        "    schedule: {every: 10m, # often, '#1'\n      anchor: '2026-01-01 # no comment'}  # short\n"
    )
    ConfigEditor(path).update_job("it", {"schedule": "every 5m"})
    assert path.read_text() == (
        "jobs:\n  it:\n    command: x\n    # often, '#1'\n    schedule: every 5m  # short\n"
    )


def test_a_key_leaves_braces_without_the_comments_of_its_neighbours(path: Path) -> None:
    text = "jobs:\n  it: {\n    command: x, # about x\n    # of time\n    timeout: 1m, # about 1m\n    priority: 1}\n"
    path.write_text(text)
    ConfigEditor(path).update_job("it", {}, ["priority"])
    assert changed(path, text) == (["    priority: 1}"], ["    }"])
    path.write_text(text)
    ConfigEditor(path).update_job("it", {"python": "a:b"}, ["command"])
    assert "# of time\n    timeout: 1m, # about 1m\n" in path.read_text()


def test_a_job_that_only_merges_another_gets_keys_of_its_own(path: Path) -> None:
    text = "jobs:\n  b: &b {command: x}\n  a:\n    <<: *b\n    # the end of a\n"
    path.write_text(text)
    ConfigEditor(path).update_job("a", {"timeout": "5m"})
    assert path.read_text() == text + "    timeout: 5m\n"


def test_a_block_is_replaced_by_one_line(path: Path) -> None:
    ConfigEditor(path).update_job("hello", {"schedule": "every 10m"})
    assert "    schedule: every 10m\n" in path.read_text()


def test_keys_are_taken_out_with_their_lines(path: Path) -> None:
    ConfigEditor(path).update_job("hello", {}, removals=["schedule", "timeout", "priority"])
    gone, came = changed(path)
    assert came == []
    assert [line.strip().split(":")[0] for line in gone] == [
        "schedule", "# In the morning.", "daily_at", "timezone", "timeout",
    ]  # fmt: skip


def test_what_is_changed_to_what_it_is_changes_nothing(path: Path) -> None:
    before = path.stat()
    ConfigEditor(path).update_job("hello", {"command": ["echo", "hello"], "timeout": "10m"})
    after = path.stat()
    assert path.read_text() == FILE
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_job_is_switched_off_and_on(path: Path) -> None:
    assert not ConfigEditor(path).set_enabled("hello", False).enabled
    assert changed(path) == ([], [])  # the same words stand in the other job already
    assert data(path)["jobs"]["hello"]["enabled"] is False
    assert ConfigEditor(path).set_enabled("hello", True).enabled
    assert data(path)["jobs"]["hello"]["enabled"] is True
    assert ConfigEditor(path).set_enabled("backup", True).enabled


def test_switching_on_what_is_on_writes_nothing(path: Path) -> None:
    ConfigEditor(path).set_enabled("hello", True)
    assert path.read_text() == FILE


@pytest.mark.parametrize(
    ("changes", "removals", "after"),
    [
        ({"timeout": 5}, [], "{command: x, timeout: 5, priority: 1, tags: [a]}"),
        ({"cwd": "/"}, [], "{command: x, timeout: 1m, priority: 1, tags: [a], cwd: /}"),
        ({}, ["timeout", "priority"], "{command: x, tags: [a]}"),
        ({}, ["priority", "tags"], "{command: x, timeout: 1m}"),
        ({"cwd": "/"}, ["priority", "tags"], "{command: x, timeout: 1m, cwd: /}"),
        ({"python": "a:b"}, ["command", "timeout", "priority", "tags"], '{python: "a:b"}'),
    ],
)
def test_a_job_in_braces_is_edited_in_braces(
    path: Path, changes: dict[str, Any], removals: list[str], after: str
) -> None:
    path.write_text("jobs:\n  it: {command: x, timeout: 1m, priority: 1, tags: [a]}  # short\n")
    ConfigEditor(path).update_job("it", changes, removals)
    assert path.read_text() == f"jobs:\n  it: {after}  # short\n"


def test_text_blocks_are_replaced_and_removed_whole(path: Path) -> None:
    text = textwrap.dedent(
        """\
        jobs:
          it:
            description: |
              # not a comment

              still text

            # a comment
            command: >-
              echo
              hello
            timeout: 1m
        """
    )
    path.write_text(text)
    ConfigEditor(path).update_job("it", {"description": "Line one\nline two"}, removals=["timeout"])
    assert path.read_text() == textwrap.dedent(
        """\
        jobs:
          it:
            description: "Line one\\nline two"

            # a comment
            command: >-
              echo
              hello
        """
    )


def test_a_faulty_job_can_be_mended(path: Path) -> None:
    path.write_text("jobs:\n  a:\n    comand: echo\n")
    ConfigEditor(path).update_job("a", {"command": "echo"}, removals=["comand"])
    assert path.read_text() == "jobs:\n  a:\n    command: echo\n"
    path.write_text("jobs:\n  a:  # empty\n")
    ConfigEditor(path).update_job("a", {"command": "echo"})
    assert path.read_text() == "jobs:\n  a: {command: echo}  # empty\n"


@pytest.mark.parametrize(
    ("text", "changes", "removals"),
    [
        # Another job would change with it.
        ("jobs:\n  a: &a\n    command: x\n  b: *a\n", {"timeout": "5m"}, []),
        # What is to go is written elsewhere.
        ("jobs:\n  b: &b {command: x, cwd: /}\n  a:\n    <<: *b\n    cwd: y\n", {}, ["cwd"]),
        # There is no `key: value` to write behind.
        ("jobs:\n  a:\n    ? timeout\n    : 1m\n    command: x\n", {"timeout": "5m"}, []),
    ],
)
def test_what_cannot_be_edited_safely_is_left_to_a_person(
    path: Path, text: str, changes: dict[str, Any], removals: list[str]
) -> None:
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="cannot be changed") as caught:
        ConfigEditor(path).update_job("a", changes, removals)
    assert caught.value.specific_code == "config_uneditable"
    assert path.read_text() == text
