"""The places of keys and values in a document."""

from config.yaml.parsing import document


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
