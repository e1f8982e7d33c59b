"""Values as text: one form in JSON, and nothing that acts on a terminal."""

import json
import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal.terminal_effects import acts_on_a_terminal
from tsuzuki.cli.terminal.values import escape_field, json_text
from tsuzuki.model.visible_text import csv_cell, neutralise

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from("\x1b\x9b\\"))


class State(StrEnum):
    FAILED = "FAILED"


class Size(Enum):
    SMALL = 1


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Size.SMALL, 1),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(minutes=2), 120.0),
        (Decimal("1.10"), "1.10"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (frozenset({"b", "a"}), ["a", "b"]),
        ((State.FAILED, None, True), ["FAILED", None, True]),
        ({State.FAILED: 1, 2: "x"}, {"FAILED": 1, "2": "x"}),
        (math.nan, None),
    ],
)
def test_a_value_has_one_form_in_json(value: object, told: object) -> None:
    assert json.loads(json_text({"value": value})) == {"value": told}


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        json_text(datetime(2026, 1, 2))  # noqa: DTZ001


@pytest.mark.parametrize("value", [object(), b"bytes", State])
def test_an_unknown_type_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be printed"):
        json_text({"value": value})


def unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        named = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
        return named.get(match[1]) or chr(int(match[1][1:], 16))

    return re.sub(r"\\(\\|n|r|t|x[0-9a-f]{2}|u[0-9a-f]{4})", character, text)


@given(ANY_TEXT)
def test_nothing_in_a_neutralised_text_acts_on_a_terminal(text: str) -> None:
    harmless = neutralise(text)
    assert not any(map(acts_on_a_terminal, harmless))
    assert neutralise(harmless) == harmless


@given(ANY_TEXT)
def test_a_plain_field_is_harmless_and_can_be_read_back(text: str) -> None:
    escaped = escape_field(text)
    assert not any(map(acts_on_a_terminal, escaped))
    assert unescaped(escaped) == text


@given(ANY_TEXT, st.booleans())
def test_json_is_harmless_and_can_be_read_back(text: str, ascii_only: bool) -> None:
    document = json_text({"value": text}, ascii_only=ascii_only)
    assert not any(map(acts_on_a_terminal, document))
    # Two surrogate halves side by side are one character to a JSON reader.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    read = json.loads(document)["value"]
    assert read.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") == whole


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "\\t=1"),
        ("a\r\nb\x1b[2J", "a\\r\\nb\\x1b[2J"),
        ("名前", "名前"),
        (-1, -1),
        (None, None),
    ],
)
def test_a_spreadsheet_finds_no_formula_in_a_cell(value: object, cell: object) -> None:
    assert csv_cell(value) == cell
