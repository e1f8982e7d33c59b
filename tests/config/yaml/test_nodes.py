"""The data of nodes: scalars, keys, aliases and merges."""

import pytest

from config.yaml.parsing import document


@pytest.mark.parametrize(
    "text",
    ["007", "0x1F", "0o17", "1_000", "12:30", "2024-01-01", ".5", ".nan", ".inf", "1e999", "yes",
     "on", "+5", "1." , "9" * 5000],
)  # fmt: skip
def test_only_what_json_calls_a_number_or_truth_is_one(text: str) -> None:
    assert document(f"value: {text}\n").data == {"value": text}


def test_keys_are_always_text() -> None:
    assert document("2024: a\nnull: b\ntrue: c\n").data == {"2024": "a", "null": "b", "true": "c"}


def test_aliases_and_merges_read_as_what_they_stand_for() -> None:
    found = document("a: &base {x: 1, y: 2}\nb: *base\nc:\n  <<: *base\n  y: 3\n")
    assert found.data["b"] == {"x": 1, "y": 2}
    assert found.data["c"] == {"x": 1, "y": 3}
    assert str(found.place_of_value(("c", "x"))) == "tsuzuki.yaml:1:14"


def test_the_first_of_several_merged_mappings_wins() -> None:
    found = document("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n")
    assert found.data["c"] == {"x": 1, "y": 2}
