"""Tables on a terminal of eighty columns: times give way before words are broken."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.cells import cell_len

from tsuzuki.cli import audit
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal import rich_tables
from tsuzuki.cli.terminal.formatting import format_stored_time
from tsuzuki.cli.terminal.output import Column
from tsuzuki.collectors.commits.commands import commits, targets
from tsuzuki.collectors.feeds.commands import feeds
from tsuzuki.model.clock import ManualClock

TERMINAL = Invocation(environ={})
NOW = datetime(2026, 11, 17, 19, 15, 41, tzinfo=UTC)
STORED = NOW.isoformat().replace("+00:00", "Z")
SECONDS, MINUTES = f"{NOW:%H:%M:%S}Z", f"{NOW:%H:%M}Z"


@pytest.fixture(autouse=True)
def _eighty_columns_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(rich_tables, "SystemClock", lambda: ManualClock(NOW))


def drawn(row: dict[str, object], columns: list[Column]) -> list[str]:
    lines = rich_tables.table_of_rows([row], columns, TERMINAL).split("\n")
    assert all(cell_len(line) <= 80 for line in lines)
    return lines


def test_times_stay_whole_where_they_fit() -> None:
    lines = drawn({"at": NOW, "stored": STORED}, [Column("at"), _stored("stored")])
    assert lines[1].split("  ") == [f"{NOW:%Y-%m-%d %H:%M:%S}Z"] * 2


def test_short_times_keep_each_row_on_its_line() -> None:
    row = {
        "id": 20,
        "at": NOW,
        "actor": "cli:root",
        "action": "commits.target.add",
        "object_id": "demo/harbour main",
        "changes": [],
    }
    lines = drawn(row, audit.COLUMNS)
    assert len(lines) == 2
    assert SECONDS in lines[1]


def test_seconds_are_left_out_before_a_word_is_broken() -> None:
    numbers = dict.fromkeys(["unprocessed", "deferred", "pending", "approval", "posted"], 3)
    names = {"name": "ministry", "job": "news-bot", "health": "good"}
    lines = drawn({**names, "last_good_at": NOW, "next_at": NOW, **numbers}, feeds.LIST)
    assert lines[-1].split() == ["ministry", "news-bot", "good", MINUTES, MINUTES, *"33333"]


def test_a_title_gives_way_before_a_time_does() -> None:
    title = "A new bridge carries trams and bicycles across the river from May on"
    row = {"id": 7, "published": NOW - timedelta(days=3), "title": title * 2}
    lines = drawn(row, [Column("id"), Column("published"), Column("title")])
    assert "  11-14 19:15Z  A new" in lines[1]


def test_a_collection_and_a_target_have_one_line_each() -> None:
    counts = dict.fromkeys(["total_targets", "success_count", "failed_count", "pending_count"], 3)
    times = {"started_at_utc": STORED, "completed_at_utc": None}
    run = {"collection_id": "8aeb5a63-70e6-4842-8d7a-a7f36dc1a307", "run_status": "completed"}
    lines = drawn({**run, **counts, **times}, commits.RUNS)
    assert len(lines) == 2
    assert lines[1].startswith("8aeb5a63")
    target = {"project_id": 1, "project": "demo/harbour", "branch": "main", "head": "22021b1d" * 5}
    times = {"last_collected": "2025-09-16T17:56:01Z", "collected_at_utc": STORED}
    lines = drawn({**target, **times}, targets.TARGETS)
    assert len(lines) == 2
    assert "  2025-09-16  " in lines[1]


def _stored(key: str) -> Column:
    return Column(key, format=format_stored_time)
