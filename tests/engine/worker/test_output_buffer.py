"""The output buffer: log lines and progress of a run are stored in order, across outages and lost replies."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from support.moving_clock import NOON
from support.statement_recorder import recorded
from support.worker_fixture import WorkerFixture, reply_lost, unreachable
from tsuzuki.engine.worker.output_buffer import BufferedOutput
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.errors import UsageError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store import logs


def test_lines_are_kept_in_order_across_outages_and_lost_replies(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    run_id = execution.task.run.id
    execution.log("one")
    execution.log("two", stream="stderr")
    with reply_lost(fixture):
        fixture.worker.tick(poll=False)
    execution.log("three")
    with unreachable(fixture):
        fixture.worker.tick(poll=False)
    execution.log("four\x00 with a NUL \ud800")
    fixture.worker.tick(poll=False)
    execution.log("five")
    execution.succeed()
    fixture.worker.tick(poll=False)
    with fixture.database.read() as connection:
        lines = logs.read(connection, run_id=run_id)
    assert [line.seq for line in lines] == [1, 2, 3, 4, 5]
    assert [line.body for line in lines][:3] == ["one", "two", "three"]
    assert (lines[3].body[:4], lines[4].body) == ("four", "five")
    assert [line.stream for line in lines] == ["log", "stderr", "log", "log", "log"]


def test_the_last_line_is_committed_with_the_end(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    execution.log("last")
    execution.succeed()
    seen: list[tuple[RunState, list[str]]] = []

    def look() -> None:
        run_id = execution.task.run.id
        seen.append((fixture.run(run_id).state, fixture.lines(run_id)))

    fixture.faulty_database.after_commit.append(look)
    fixture.worker.tick(poll=False)
    assert seen == [(RunState.SUCCEEDED, ["last"])]


def test_in_a_race_with_a_tick_the_line_just_before_the_end_is_kept(
    fixture: WorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (execution,) = fixture.start()
    take = fixture.worker.output.take

    def take_while_the_run_ends() -> BufferedOutput:
        buffered = take()
        monkeypatch.setattr(fixture.worker.output, "take", take)
        execution.log("last")
        execution.succeed()
        return buffered

    monkeypatch.setattr(fixture.worker.output, "take", take_while_the_run_ends)
    fixture.worker.tick()
    fixture.worker.tick()
    assert fixture.run(execution.task.run.id).state is RunState.SUCCEEDED
    assert fixture.lines(execution.task.run.id) == ["last"]


def test_a_long_log_keeps_its_first_and_its_last_lines_and_others_are_whole(
    fixture: WorkerFixture,
) -> None:
    chatty, quiet = fixture.start(2)
    for number in range(100):
        chatty.log(f"{number:03d} " + "é" * 50)
    quiet.log("I am here")
    fixture.worker.tick(poll=False)
    chatty.log("the error")
    quiet.log("still here")
    fixture.worker.tick(poll=False)
    first = [f"{n:03d}" for n in range(7)]
    assert [line[:3] for line in fixture.lines(chatty.task.run.id)] == [*first, "the"]
    chatty.fail()
    with reply_lost(fixture):
        fixture.worker.tick(poll=False)
    fixture.worker.tick(poll=False)
    lines = fixture.lines(chatty.task.run.id)
    assert [line[:3] for line in lines[:8]] == [*first, "the"]
    assert lines[8:] == [
        "92 lines (9660 bytes) are missing here",
        "099 " + "é" * 50,
        "the error",
    ]
    assert fixture.lines(quiet.task.run.id) == ["I am here", "still here"]


def test_the_current_cap_counts(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    fixture.settings = EngineSettings(log_bytes_max_per_run=4096)
    for _ in range(30):
        execution.log("x" * 49)
    fixture.worker.tick(poll=False)
    assert len(fixture.lines(execution.task.run.id)) == 30


def test_a_full_buffer_makes_a_writer_wait_until_it_is_emptied(fixture: WorkerFixture) -> None:
    fixture.settings = EngineSettings()
    (execution,) = fixture.start()
    run_io = fixture.worker.run_io
    while run_io.has_space():
        execution.log("x" * 10_000)
    assert not run_io.wait_for_space(0)
    with unreachable(fixture):
        fixture.worker.tick(poll=False)
    assert not run_io.wait_for_space(0)
    waiting = threading.Thread(target=run_io.wait_for_space, args=(60.0,))
    waiting.start()
    fixture.worker.tick(poll=False)
    waiting.join(20.0)
    assert not waiting.is_alive()
    assert run_io.has_space()


def test_inside_a_transaction_there_is_no_wait_for_space(fixture: WorkerFixture) -> None:
    """On SQLite the buffer can be written only after it."""
    fixture.settings = EngineSettings()
    (execution,) = fixture.start()
    while fixture.worker.run_io.has_space():
        execution.log("x" * 10_000)
    with fixture.worker.run_io.transaction(execution.task):
        assert fixture.worker.run_io.wait_for_space(60.0)


def test_more_lines_at_once_than_the_buffer_holds_are_all_stored(fixture: WorkerFixture) -> None:
    fixture.settings = EngineSettings()
    (execution,) = fixture.start()
    for number in range(30_000):
        if not fixture.worker.run_io.has_space():
            fixture.worker.tick(poll=False)
        execution.log(f"{number:06d} " + "x" * 60)
    execution.succeed()
    fixture.worker.tick(poll=False)
    with fixture.database.read() as connection:
        lines = logs.read(connection, run_id=execution.task.run.id, limit=200_000)
    assert len(lines) == 30_000
    assert all(line.body.startswith(f"{number:06d} ") for number, line in enumerate(lines))


def test_progress_is_written_with_the_next_tick_the_newest_wins(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    execution.progress(1, 10)
    execution.progress(2, 10)
    fixture.clock.advance(1)
    fixture.worker.tick(poll=False)
    run = fixture.run(execution.task.run.id)
    assert (run.progress_processed, run.progress_total) == (2, 10)
    assert run.progress_at == NOON + timedelta(seconds=1)
    execution.progress(5, None)
    with unreachable(fixture):
        fixture.worker.tick(poll=False)
    execution.progress(6, None)
    fixture.worker.tick(poll=False)
    run = fixture.run(execution.task.run.id)
    assert (run.progress_processed, run.progress_total) == (6, None)


def test_progress_that_no_database_can_store_is_an_error_in_the_handler(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    bad: list[tuple[Any, Any]] = [
        (-1, None),
        (1, -1),
        (2**63, None),
        (1, 2**70),
        (1.5, 3),
        ("1", 2),
        (True, None),
        (1, True),
    ]
    for processed, total in bad:
        with pytest.raises(UsageError, match="progress"):
            execution.progress(processed, total)
    execution.progress(2**63 - 1, 2**63 - 1)
    execution.succeed()
    assert len(fixture.worker.tick().ended) == 1
    assert fixture.run(execution.task.run.id).progress_processed == 2**63 - 1


def test_a_tick_with_nothing_to_write_sends_nothing(fixture: WorkerFixture) -> None:
    fixture.start()
    with recorded(fixture.database) as sent:
        assert fixture.worker.tick(poll=False) == WorkerStep()
    assert sent == []
