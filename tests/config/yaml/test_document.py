"""The places of keys and values in a document, and the cache of parsed text."""

import os
from pathlib import Path

import pytest

from config.yaml.parse_count import count_parses
from config.yaml.parsing import document
from tsuzuki.config.yaml.document import read_document


def test_every_key_and_value_has_its_place() -> None:
    found = document("a: 1\njobs:\n  hello:\n    command: [echo, hi]\n    timeout:\n")
    assert str(found.place_of_key(("jobs", "hello", "command"))) == "tsuzuki.yaml:4:5"
    assert str(found.place_of_value(("jobs", "hello", "command"))) == "tsuzuki.yaml:4:14"
    assert str(found.place_of_value(("jobs", "hello", "command", 1))) == "tsuzuki.yaml:4:21"
    assert str(found.place_of_value(("jobs", "hello", "timeout"))) == "tsuzuki.yaml:5:13"
    assert found.place_of_value(("a",)).text == "a: 1"


def test_what_does_not_exist_is_placed_at_the_nearest_thing_that_does() -> None:
    found = document("jobs:\n  hello:\n    command: x\n")
    assert str(found.place_of_value(("jobs", "hello", "python"))) == "tsuzuki.yaml:2:3"
    assert str(found.place_of_key(("nothing",))) == "tsuzuki.yaml:1:1"


def test_columns_count_characters_not_bytes() -> None:
    found = document("説明: {続き: 値}\n")
    assert str(found.place_of_value(("説明", "続き"))) == "tsuzuki.yaml:1:10"


def test_an_unchanged_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text("timezone: UTC\n")
    parsed = count_parses(monkeypatch)
    assert read_document(path).data == read_document(path).data == {"timezone": "UTC"}
    path.write_text("timezone: UTC\n")
    assert read_document(path).data == {"timezone": "UTC"}
    assert parsed == ["timezone: UTC\n"]


def test_a_change_is_seen_even_if_size_and_modification_time_stay_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text("priority: 1\n")
    before = path.stat()
    assert read_document(path).data == {"priority": 1}
    path.write_text("priority: 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
        before.st_mtime_ns, before.st_size, before.st_ino,
    )  # fmt: skip
    assert read_document(path).data == {"priority": 2}


def test_readers_of_one_text_do_not_share_its_data(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text("jobs: {}\n")
    read_document(path).data["jobs"]["new"] = {}
    assert read_document(path).data == {"jobs": {}}
