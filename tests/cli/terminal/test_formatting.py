"""Values in the words of a reader."""

import pytest

from tsuzuki.cli.terminal.formatting import (
    describe_changes,
    format_duration,
    format_list,
    format_number,
    format_size,
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0, "0s"),
        (0.5, "0.5s"),
        (90, "1m30s"),
        (3600.0, "1h"),
        (93_784.0, "1d2h3m4s"),
    ],
)
def test_a_duration_is_told_as_it_is_written_in_the_file(seconds: float | None, words: str) -> None:
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1_572_864, "1.5 MiB"),
        (5 * 1024**5, "5120.0 TiB"),
    ],
)
def test_a_size_is_told_in_the_unit_that_fits(size: int, words: str) -> None:
    assert format_size(size) == words


def test_a_whole_number_has_no_decimals_whatever_its_kind() -> None:
    told = [format_number(value) for value in (10.0, 10, 0.3, None, "x")]
    assert told == ["10", "10", "0.3", "-", "x"]


def test_a_list_is_told_with_commas_and_an_empty_one_with_a_dash() -> None:
    assert format_list(["a", 1]) == "a, 1"
    assert format_list([]) == "-"


def test_a_change_is_told_part_by_part() -> None:
    before = {"same": 1, "deep": {"a": 1, "b": 2.0}, "old": True}
    after = {"same": 1, "deep": {"a": 5, "b": 2.0}, "new": [1]}
    assert describe_changes(before, after) == ["deep.a: 1 → 5", "old: yes → -", "new: - → [1]"]
    assert describe_changes(10.0, 12.0) == ["10 → 12"]
    assert describe_changes(None, after) == []
    assert describe_changes(before, None) == []
