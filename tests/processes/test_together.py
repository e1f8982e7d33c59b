"""Several processes at once: one tick one run, one key one event, one cancel the whole tree."""

import os
import socket
import urllib.request
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import text

from processes.test_dying import add_command, started
from support.daemons import Daemons, eventually, is_alive
from support.dialects import only_on_sqlite
from support.forked_program import ForkedProgram
from support.history_checker import check_history
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


def pids_in(file: Path, count: int) -> list[int]:
    return eventually(
        lambda: (
            (found := file.read_text("utf-8").split() if file.exists() else [])
            and len(found) >= count
            and [int(pid) for pid in found]
        ),
        what=f"{count} processes to print their ids",
    )


def test_two_schedulers_make_one_run_of_each_tick_and_miss_none(
    quick_database: Database, daemons: Daemons, runs: Runs
) -> None:
    daemons.start("up")
    daemons.start("up")
    add_command(quick_database, "often", "true", schedule=parse_schedule("every 1s"))
    often = RunFilter(job_name="often", limit=100)
    eventually(lambda: len(runs.find(often)) >= 5, what="five ticks")
    ticks = sorted(run.scheduled_for for run in runs.find(often) if run.trigger is Trigger.TIME)
    assert len(ticks) == len(set(ticks))
    assert all(b - a == timedelta(seconds=1) for a, b in pairwise(ticks))
    assert ticks[-1] <= datetime.now(UTC)
    check_history(quick_database)


def test_an_event_that_several_processes_emit_at_once_starts_one_run(
    quick_database: Database, database_url: str, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    add_command(quick_database, "on-order", "true", on_event="order")
    daemons.start("up")
    emit = ["--database-url", database_url, "event", "emit", "order", "--key", "one"]
    together = [ForkedProgram(emit, cwd=tmp_path, env=os.environ) for _ in range(3)]
    assert [process.wait(100) for process in together] == [0] * 3
    done = frozenset({RunState.SUCCEEDED})
    (only,) = eventually(
        lambda: runs.find(RunFilter(job_name="on-order", states=done)) or None,
        what="the run of the event",
    )
    assert only.trigger is Trigger.EVENT
    assert len(runs.find(RunFilter(job_name="on-order"))) == 1


@pytest.mark.parametrize("ended_by", ["cancel", "timeout"])
def test_the_whole_tree_of_processes_ends_with_its_run(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path, ended_by: str
) -> None:
    pids = tmp_path / "pids"
    script = f"echo $$ >> {pids}; (trap '' TERM; echo $$ >> {pids}; sh -c 'echo $$ >> {pids}; sleep 600') & wait"
    timeout = 1.5 if ended_by == "timeout" else None
    add_command(quick_database, "tree", script, timeout_seconds=timeout)
    daemons.start("up")
    run_id = runs.submit(Request(job="tree")).run_id
    started(runs, run_id)
    tree = pids_in(pids, 3)
    if ended_by == "cancel":
        runs.cancel(run_id)
    ended = runs.wait(run_id, timeout_seconds=120)
    expected = {
        "cancel": (RunState.CANCELED, Reason.OPERATOR),
        "timeout": (RunState.TIMED_OUT, Reason.TIMEOUT),
    }
    assert (ended.state, ended.reason) == expected[ended_by]
    eventually(lambda: not any(is_alive(pid) for pid in tree), what="all of them to be dead")
    check_history(quick_database)


@only_on_sqlite
def test_an_edited_file_takes_effect_while_it_runs(
    quick_database: Database, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    file = tmp_path / "tsuzuki.yaml"
    file.write_text("jobs:\n  hello: {command: ['true']}\n")
    daemon = daemons.start("up")
    file.write_text("jobs:\n  hello: {command: ['true']}\n  new: {command: [echo, new]}\n")
    assert daemon.wait_for("job from the file applied")["job"] == "new"
    run_id = runs.submit(Request(job="new")).run_id
    assert runs.wait(run_id, timeout_seconds=120).state is RunState.SUCCEEDED


def test_a_process_whose_database_is_upgraded_under_it_stops_and_says_so(
    quick_database: Database, daemons: Daemons
) -> None:
    daemon = daemons.start("up")
    with quick_database.write() as connection:
        connection.execute(text("UPDATE tsuzuki_schema_version_engine SET version_num = 'ffff'"))
    assert daemon.ended() == 5
    assert "ffff" in "".join(daemon.other_lines)


def test_metrics_are_served_in_the_form_of_prometheus(
    quick_database: Database, daemons: Daemons, runs: Runs
) -> None:
    add_command(quick_database, "brief", "true")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    daemons.start("up", "--metrics-port", str(port))
    runs.wait(runs.submit(Request(job="brief")).run_id, timeout_seconds=120)

    def ended() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            metrics = answer.read().decode()
        assert "tsuzuki_leading 1.0" in metrics
        return 'tsuzuki_runs_ended_total{job="brief",state="SUCCEEDED"} 1.0' in metrics

    eventually(ended, what="the run to be counted")
