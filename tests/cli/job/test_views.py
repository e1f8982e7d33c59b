"""How jobs look on a terminal: one line each, and no word broken in any table that can do without."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.job.views import terminal_list, times
from tsuzuki.cli.terminal import rich_tables
from tsuzuki.cli.terminal.output import Column
from tsuzuki.model.states import Outcome

NOW = datetime(2026, 11, 17, 3, 30, tzinfo=UTC)
TERMINAL = Invocation(environ={}, no_color=True)
JOB: dict[str, Any] = {
    "name": "hello",
    "enabled": True,
    "schedule_words": "at 09:00 and 17:30 from monday to friday, Europe/Berlin",
    "next_at": NOW + timedelta(days=1),
    "handler": "command",
    "source": "file",
    "sync_state": "applied",
    "last_outcome": Outcome.SUCCEEDED,
    "last_ended_at": NOW - timedelta(minutes=5),
}


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@settings(max_examples=50)
@given(
    st.lists(st.text(min_size=1, max_size=150), min_size=1, max_size=3),
    st.sampled_from(["applied", "not applied", "removed from the file"]),
)
def test_each_job_has_one_line_of_eighty_characters(names: list[str], sync_state: str) -> None:
    jobs = [{**JOB, "name": name, "sync_state": sync_state} for name in names]
    lines = rich_tables.table_of_rows(jobs, terminal_list(jobs, NOW), TERMINAL).split("\n")
    assert len(lines) == len(names) + 1
    for line in lines[1:]:
        assert cell_len(line) <= 80
        assert "11-18 03:30Z" in line
        assert "succeeded" in line
        assert "5m ago" in line
        assert (sync_state in line) is (sync_state != "applied")


def test_a_list_of_jobs_says_where_they_are_if_that_differs() -> None:
    def keys(*jobs: dict[str, Any]) -> set[str]:
        return {column.key for column in terminal_list(jobs, NOW)}

    assert keys(JOB).isdisjoint({"source", "sync_state"})
    assert keys(JOB, {**JOB, "source": "database"}) >= {"source", "name", "next_at"}


def test_no_word_is_broken_where_sentences_can_give_way() -> None:
    rows = [{"key": "continuation_retry_interval_seconds", "default": 0.3, "why": "word " * 30}]
    table = rich_tables.table_of_rows(
        rows, [Column("key"), Column("default"), Column("why")], TERMINAL
    )
    assert "continuation_retry_interval_seconds  0.3" in table
    assert {word for line in table.split("\n")[2:] for word in line.split()} == {"word"}
    assert all(cell_len(line) <= 80 for line in table.split("\n"))


def test_where_words_must_be_broken_the_first_column_is_spared() -> None:
    rows = [{"key": "k" * 30, "value": "v" * 40, "origin": "o" * 30}]
    table = rich_tables.table_of_rows(
        rows, [Column("key"), Column("value"), Column("origin")], TERMINAL
    )
    assert "k" * 30 in table
    for letter, count in (("v", 40), ("o", 30)):
        assert table.count(letter) == count, "nothing is cut"
    assert all(cell_len(line) <= 80 for line in table.split("\n"))


def test_times_are_written_alike_everywhere() -> None:
    assert times([NOW]) == "2026-11-17 03:30:00Z"
    assert times([]) == "-"
