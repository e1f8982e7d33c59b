"""How runs look on a terminal: one line each, nothing broken, what matters first."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from support.executions import RUN
from support.workspace import Workspace
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.run.views import summary, terminal_history, terminal_list
from tsuzuki.cli.terminal import rich_tables
from tsuzuki.cli.terminal.formatting import short_time
from tsuzuki.model.run import Transition
from tsuzuki.model.states import Actor, Reason, RunState
from tsuzuki.services.runs import RunView

NOW = datetime(2026, 11, 17, 3, 30, tzinfo=UTC)
DUE = NOW - timedelta(minutes=10)
TERMINAL = Invocation(environ={}, no_color=True)
FAILED = replace(
    RUN,
    id=1_234_567,
    state=RunState.FAILED,
    scheduled_for=DUE,
    attempt=2,
    started_at=DUE,
    finished_at=DUE + timedelta(seconds=90),
    reason=Reason.HANDLER_FAILED,
    error="exit code 3",
)


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@given(st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=4))
def test_each_run_has_one_line_of_eighty_characters(names: list[str]) -> None:
    found = [
        replace(FAILED, job_name=name, progress_at=NOW, progress_processed=1_000_000)
        for name in names
    ]
    lines = rich_tables.table_of_rows(*terminal_list(found, NOW), TERMINAL).split("\n")
    assert len(lines) == len(names) + 1
    for line in lines[1:]:
        assert cell_len(line) <= 80
        assert f"{FAILED.id}" in line
        assert " FAILED " in line
        assert "03:20:00Z" in line


def test_a_list_leaves_out_a_column_that_would_be_empty() -> None:
    _, columns = terminal_list([replace(FAILED, reason=None, error=None)], NOW)
    assert {"why", "progress"}.isdisjoint(column.key for column in columns)
    assert "took" in [column.key for column in columns]


def test_a_list_shows_errors_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    failed = replace(FAILED, error="exit code 1: KeyError:\n'customer_id'")
    table = rich_tables.table_of_rows(*terminal_list([failed], NOW), TERMINAL)
    assert "exit code 1: KeyError: 'customer_id'" in table


def test_a_skipped_run_is_shown_as_such_with_the_run_in_its_way() -> None:
    skipped = replace(
        RUN, state=RunState.CANCELED, reason=Reason.OVERLAP, finished_at=NOW, blocked_by=41
    )
    table = rich_tables.table_of_rows(*terminal_list([skipped], NOW), TERMINAL)
    assert " SKIPPED " in table
    assert "run 41" in table


def test_a_history_has_one_line_of_eighty_characters_for_each_move() -> None:
    move = Transition(
        run_id=1,
        version=2,
        from_state=RunState.ASSIGNED,
        to_state=RunState.SUCCEEDED,
        at=DUE,
        actor=Actor.OPERATOR,
        actor_id="a-host-with-a-long-name.example.org-4711-abcdef",
        epoch=12_345,
        reason=Reason.HANDLER_FAILED,
        worker_id=None,
    )
    lines = rich_tables.table_of_rows([move], terminal_history(NOW), TERMINAL).split("\n")
    assert len(lines) == 2
    assert cell_len(lines[1]) <= 80


def test_one_run_is_told_without_what_is_not_there() -> None:
    shown, _ = summary(RunView(run=FAILED, history=[], retried_as=9), NOW)
    assert [*shown] == [
        "run", "job", "state", "why", "error", "attempt", "retried as",
        "due", "started", "finished", "took", "worker",
    ]  # fmt: skip
    assert shown["took"] == 90


def test_a_short_time_names_the_day_unless_it_is_today() -> None:
    short = short_time(NOW)
    assert short(None) == "-"
    assert short(NOW) == "03:30:00Z"
    assert short(NOW - timedelta(hours=4)) == "11-16 23:30Z"
    assert short(NOW - timedelta(days=365)) == "2025-11-17"


def test_every_field_of_a_run_is_shown_when_asked_for(workspace: Workspace) -> None:
    run_id = str(workspace.data("job", "run", "hello")["run_id"])
    assert "VERSION" not in workspace.ok("run", "show", run_id).out
    assert "VERSION" in workspace.ok("run", "show", run_id, "--all").out


def test_a_watched_run_shows_its_log_and_when_it_is_tried_again(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")  # its moment may come, and its run takes an id
    workspace.ok("job", "add", "bad", "--max-retries", "1", "--", "sh", "-c", "echo said; exit 3")
    run_id = str(workspace.data("job", "run", "bad")["run_id"])
    assert workspace.run("run-due", "--quiet").code == 1
    watched = workspace.run("run", "watch", run_id, "--timeout", "3")
    assert watched.code == 124
    told = watched.err.splitlines()
    assert told[0] == "said"
    assert "is FAILED" in told[1]
    assert told[2].startswith("Retrying at ")
    assert told[3] == f"Run {int(run_id) + 1} of bad is PENDING"


def test_before_the_first_term_no_lease_is_shown(workspace: Workspace) -> None:
    assert "1970" not in workspace.ok("leader", "show").out


def test_an_event_tells_which_jobs_it_will_run(workspace: Workspace) -> None:
    assert "No enabled job listens for 'order'" in workspace.ok("event", "emit", "order").err
    workspace.ok("job", "add", "on-order", "--on-event", "order", "--", "true")
    told = workspace.ok("event", "emit", "order")
    assert told.err == "Jobs that will run: on-order\n"
    assert workspace.data("event", "emit", "order")["listeners"] == ["on-order"]
