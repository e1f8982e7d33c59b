"""Data on stdout in four formats, talk on stderr, and nothing from outside that acts on a terminal."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cli.terminal.terminal_effects import acts_on_a_terminal
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal import tables
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.model.visible_text import neutralise

TABLE, JSON, JSONL, PLAIN = (Invocation(environ={}, output=form) for form in OutputFormat)
MOMENT = datetime(2026, 11, 16, 4, 49, 41, 5, tzinfo=timezone(timedelta(hours=9)))


class State(StrEnum):
    FAILED = "FAILED"


@dataclass(frozen=True)
class Row:
    id: int
    name: str
    state: State = State.FAILED
    at: datetime | None = MOMENT
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"#{self.id}"


ROWS = [Row(1, "夜間バックアップ"), Row(20, "short", at=None)]
COLUMNS = [Column("id", align="right"), Column("name"), Column("state"), Column("at")]


def test_a_piped_table_is_aligned_and_wide_characters_count_two(
    capsys: pytest.CaptureFixture[str],
) -> None:
    emit(TABLE, ROWS, columns=COLUMNS)
    assert capsys.readouterr().out.splitlines() == [
        "ID  NAME              STATE   AT",
        " 1  夜間バックアップ  FAILED  2026-11-15 19:49:41Z",
        "20  short             FAILED  -",
    ]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_any_text_is_aligned_and_stays_on_its_line(pairs: list[tuple[str, str]]) -> None:
    rows = [{"first": first, "mark": "|", "rest": rest} for first, rest in pairs]
    columns = [Column("first"), Column("mark"), Column("rest")]
    lines = tables.of_rows(rows, columns, TABLE).split("\n")
    assert len(lines) == len(rows) + 1
    starts = {cell_len(neutralise(first)) for first, _ in pairs}
    for line, (first, _) in zip(lines[1:], pairs, strict=True):
        blanks = " " * (max(starts | {5}) - cell_len(neutralise(first)) + 2)
        assert line.startswith(f"{neutralise(first)}{blanks}|")


def test_one_object_is_a_table_of_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    emit(TABLE, Row(1, "名前", extra={"a": 1}))
    assert capsys.readouterr().out.splitlines() == [
        "ID     1",
        "NAME   名前",
        "STATE  FAILED",
        "AT     2026-11-15 19:49:41Z",
        'EXTRA  {"a": 1}',
    ]


def test_a_column_may_show_a_property_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("label", "WHICH"), Column("id", "TIMES", lambda count: f"{count} times")]
    emit(TABLE, ROWS[:1], columns=columns)
    assert capsys.readouterr().out == "WHICH  TIMES\n#1     1 times\n"
    emit(PLAIN, ROWS[:1], columns=columns)
    assert capsys.readouterr().out == "#1\t1\n"


def test_a_long_value_is_never_cut_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    emit(TABLE, [{"name": long, "state": "ok"}])
    assert f"{long}  ok" in capsys.readouterr().out.splitlines()


def test_no_rows_are_told_to_the_person_and_print_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    emit(TABLE, [], columns=COLUMNS, empty="no runs yet")
    assert capsys.readouterr() == ("", "no runs yet\n")


def test_no_rows_are_an_empty_list_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    emit(JSON, iter([]), columns=COLUMNS)
    assert capsys.readouterr() == ("[]\n", "")
    emit(JSONL, iter([]), columns=COLUMNS)
    assert capsys.readouterr() == ("", "")


def test_json_holds_every_field_whatever_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "id": 1,
        "name": "夜間バックアップ",
        "state": "FAILED",
        "at": "2026-11-15T19:49:41.000005Z",
        "extra": {},
    }
    emit(JSON, ROWS[:1], columns=[Column("id")])
    assert json.loads(capsys.readouterr().out) == [expected]
    emit(JSON, ROWS[0], columns=[Column("id")])
    assert json.loads(capsys.readouterr().out) == expected
    emit(JSONL, ROWS, columns=[Column("id")])
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 20]
    assert "夜間" in lines[0]


@pytest.mark.parametrize("data", ["text", 7, ["text"]])
def test_what_is_neither_an_object_nor_rows_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        emit(TABLE, data)


def test_plain_lines_have_no_heading_and_escape_what_would_split_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"a": "tab\there", "b": None, "c": True, "d": "line\nfeed", "e": "C:\\x", "f": MOMENT}
    emit(PLAIN, [row])
    assert capsys.readouterr().out == (
        "tab\\there\t\ttrue\tline\\nfeed\tC:\\\\x\t2026-11-15T19:49:41.000005Z\n"
    )


@pytest.mark.parametrize("invocation", [JSONL, PLAIN])
def test_rows_are_printed_as_they_come(
    invocation: Invocation, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def rows() -> Iterator[dict[str, int]]:
        for number in range(3):
            yield {"number": number}
            printed.append(capsys.readouterr().out)

    emit(invocation, rows())
    assert [int(re.findall(r"\d", text)[0]) for text in printed] == [0, 1, 2]


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b31m", "\x1b]0;title\x07", "a\u202eb", "a\rb"])
def test_a_hostile_name_reaches_no_format_alive(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for invocation in (TABLE, PLAIN, JSON, JSONL):
        emit(invocation, [{"name": hostile}])
        emit(invocation, {"name": hostile})
        say(invocation, hostile)
        warn(invocation, hostile)
        told = capsys.readouterr()
        assert not any(map(acts_on_a_terminal, (told.out + told.err).replace("\n", "")))


def test_talk_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say(TABLE, "collecting")
    warn(TABLE, "slow")
    assert capsys.readouterr() == ("", "collecting\nwarning: slow\n")


def test_quiet_silences_talk(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Invocation(environ={}, quiet=True)
    say(quiet, "collecting")
    warn(quiet, "slow")
    assert capsys.readouterr() == ("", "")


def test_a_caller_who_reads_json_finds_nothing_but_json_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say(JSON, "collecting")
    warn(JSON, "slow")
    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err) == {"warning": {"message": "slow"}}
