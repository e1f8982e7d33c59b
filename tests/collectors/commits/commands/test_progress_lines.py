"""Progress without a terminal: a line every few seconds, and none for what is over at once."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from support.executions import RUN
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.run.watch import StateLines
from tsuzuki.cli.terminal.progress import waiting_told
from tsuzuki.collectors.commits.commands.progress import Bars
from tsuzuki.collectors.commits.commands.progress_lines import ProgressLines
from tsuzuki.model.clock import ManualClock

TABLE = Invocation(environ={})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, tzinfo=UTC))


def progress(done: int) -> Any:
    summary = SimpleNamespace(success_count=done, failed_count=1, total_targets=30)
    return SimpleNamespace(summary=summary, new_commits=done * 10, completing=[])


def test_a_run_tells_its_progress_every_five_seconds(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = StateLines(TABLE, clock=clock)
    for second in range(13):
        lines.show(replace(RUN, progress_processed=second, progress_total=40))
        clock.advance(1)
    _, *told = capsys.readouterr().err.splitlines()
    assert told == [f"Run {RUN.id}: 5 of 40 done", f"Run {RUN.id}: 10 of 40 done"]


def test_a_run_without_progress_tells_how_long_it_has_run(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = StateLines(TABLE, clock=clock)
    lines.show(replace(RUN, progress_processed=0))
    for _ in range(260):
        clock.advance(1)
        lines.wait()
    _, *told = capsys.readouterr().err.splitlines()
    moments = (5, 10, 15, 25, 40, 60, 90, 135, 195, 255)  # more and more rarely, up to a minute
    assert told == [f"Run {RUN.id} is {RUN.state} for {seconds} s" for seconds in moments]


def test_a_collection_of_commits_tells_its_progress_every_five_seconds(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressLines(TABLE, clock=clock) as lines:
        for second in range(13):
            lines.show(progress(second))
            clock.advance(1)
    assert capsys.readouterr().err.splitlines() == [
        "6 of 30 targets, 1 failed; 50 new commits, 10 per second",
        "11 of 30 targets, 1 failed; 100 new commits, 10 per second",
    ]


def test_a_project_whose_earlier_commits_are_completed_has_a_line_of_its_own(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ProgressLines(TABLE, clock=clock)
    clock.advance(6)
    shown = progress(1)
    shown.completing = [SimpleNamespace(path="group/one", complete_commits=20, commits=300)]
    lines.show(shown)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "group/one: parents and paths of 20 of 300 commits"
    ]


def test_a_program_that_reads_json_is_told_nothing(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ProgressLines(Invocation(environ={}, output=OutputFormat.JSON), clock=clock)
    clock.advance(60)
    lines.show(progress(1))
    assert capsys.readouterr().err == ""


def test_a_command_that_waits_for_a_service_says_so_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    twice = threading.Event()

    def note(_invocation: Invocation, text: str) -> None:
        told.append(text)
        if len(told) == 2:
            twice.set()

    monkeypatch.setattr("tsuzuki.cli.terminal.progress.say", note)
    with waiting_told(TABLE, "the GitLab", seconds=0.001):
        assert twice.wait(120)
    assert all(line.startswith("Waiting for the GitLab (") for line in told)


def test_a_short_wait_for_a_service_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting_told(TABLE, "the GitLab"):
        pass
    assert capsys.readouterr().err == ""


def test_the_bar_shows_how_many_targets_have_ended() -> None:
    bars = Bars(TABLE)
    for done in (3, 7):
        bars.show(SimpleNamespace(**vars(progress(done)), in_work=[]))
        (task,) = bars._bar.tasks
        assert (task.completed, task.total) == (done + 1, 30)
        assert task.fields["words"].startswith(f"1 failed · {done * 10} commits · ")
