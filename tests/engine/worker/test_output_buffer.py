"""What handlers say is kept with the run, and what they store is stored while the run is theirs."""

from datetime import timedelta
from typing import Any

import pytest

from support.moving_clock import NOON
from support.statement_recorder import recorded
from support.threads import in_background
from support.worker_bench import Bench, away, lost, note, take_away
from tsuzuki.engine.worker.output_buffer import BufferedOutput
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.errors import Fenced, UsageError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs
from tsuzuki.store import logs

# --- what handlers say ----------------------------------------------------------------------------


def test_lines_are_kept_in_the_order_said_across_outages_and_lost_answers(bench: Bench) -> None:
    (execution,) = bench.begin()
    run_id = execution.task.run.id
    execution.log("one")
    execution.log("two", stream="stderr")
    with lost(bench):
        bench.worker.tick(poll=False)
    execution.log("three")
    with away(bench):
        bench.worker.tick(poll=False)
    execution.log("four\x00 with a NUL \ud800")
    bench.worker.tick(poll=False)
    execution.log("five")
    execution.succeed()
    bench.worker.tick(poll=False)
    with bench.truth.read() as connection:
        lines = logs.read(connection, run_id=run_id)
    assert [line.seq for line in lines] == [1, 2, 3, 4, 5]
    assert [line.body for line in lines][:3] == ["one", "two", "three"]
    assert (lines[3].body[:4], lines[4].body) == ("four", "five")
    assert [line.stream for line in lines] == ["log", "stderr", "log", "log", "log"]


def test_whoever_sees_the_end_sees_the_last_line(bench: Bench) -> None:
    (execution,) = bench.begin()
    execution.log("last")
    execution.succeed()
    seen: list[tuple[RunState, list[str]]] = []

    def look() -> None:
        run_id = execution.task.run.id
        seen.append((bench.run(run_id).state, bench.lines(run_id)))

    bench.door.after_commit.append(look)
    bench.worker.tick(poll=False)
    assert seen == [(RunState.SUCCEEDED, ["last"])]


def test_a_line_said_just_before_the_end_is_kept_wherever_in_a_tick_the_two_fall(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (execution,) = bench.begin()
    take = bench.worker.output.take

    def take_and_hear_more() -> BufferedOutput:
        papers = take()
        monkeypatch.setattr(bench.worker.output, "take", take)
        execution.log("last")
        execution.succeed()
        return papers

    monkeypatch.setattr(bench.worker.output, "take", take_and_hear_more)
    bench.worker.tick()
    bench.worker.tick()
    assert bench.run(execution.task.run.id).state is RunState.SUCCEEDED
    assert bench.lines(execution.task.run.id) == ["last"]


def test_a_log_is_cut_at_its_cap_with_a_word_about_it_and_others_are_not(bench: Bench) -> None:
    chatty, quiet = bench.begin(2)
    for number in range(100):
        chatty.log(f"{number:03d} " + "é" * 50)
    quiet.log("I am here")
    bench.worker.tick(poll=False)
    chatty.log("still talking")
    quiet.log("still here")
    bench.worker.tick(poll=False)
    lines = bench.lines(chatty.task.run.id)
    assert lines[-1] == "the log was cut here, after 945 bytes"
    assert [line[:3] for line in lines[:-1]] == [f"{n:03d}" for n in range(9)]
    assert bench.lines(quiet.task.run.id) == ["I am here", "still here"]


def test_the_cap_that_is_in_force_counts(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.settings = EngineSettings(log_bytes_max_per_run=2048)
    for _ in range(30):
        execution.log("x" * 49)
    bench.worker.tick(poll=False)
    assert len(bench.lines(execution.task.run.id)) == 30


def test_progress_is_written_with_the_next_tick_the_newest_wins(bench: Bench) -> None:
    (execution,) = bench.begin()
    execution.progress(1, 10)
    execution.progress(2, 10)
    bench.clock.advance(1)
    bench.worker.tick(poll=False)
    run = bench.run(execution.task.run.id)
    assert (run.progress_processed, run.progress_total) == (2, 10)
    assert run.progress_at == NOON + timedelta(seconds=1)
    execution.progress(5, None)
    with away(bench):
        bench.worker.tick(poll=False)
    execution.progress(6, None)
    bench.worker.tick(poll=False)
    run = bench.run(execution.task.run.id)
    assert (run.progress_processed, run.progress_total) == (6, None)


def test_progress_that_no_database_could_keep_is_the_handlers_mistake_not_the_workers(
    bench: Bench,
) -> None:
    (execution,) = bench.begin()
    bad: list[tuple[Any, Any]] = [
        (-1, None),
        (1, -1),
        (2**63, None),
        (1, 2**70),
        (1.5, 3),
        ("1", 2),
    ]
    for processed, total in bad:
        with pytest.raises(UsageError, match="progress"):
            execution.progress(processed, total)
    execution.progress(2**63 - 1, 2**63 - 1)
    execution.succeed()
    assert len(bench.worker.tick().ended) == 1
    assert bench.run(execution.task.run.id).progress_processed == 2**63 - 1


def test_a_tick_with_nothing_to_say_asks_nothing(bench: Bench) -> None:
    bench.begin()
    with recorded(bench.truth) as sent:
        assert bench.worker.tick(poll=False) == WorkerStep()
    assert sent == []


# --- transactions of handlers ---------------------------------------------------------------------


def test_rows_and_progress_of_a_transaction_are_there_together(bench: Bench) -> None:
    (execution,) = bench.begin()
    with execution.run_io.transaction(execution.task) as connection:
        note(connection)
        execution.progress(3, 4)
    assert (bench.notes(), bench.run(execution.task.run.id).progress_processed) == (1, 3)


def test_a_transaction_whose_block_raises_leaves_nothing(bench: Bench) -> None:
    (execution,) = bench.begin()

    def break_off() -> None:
        with execution.run_io.transaction(execution.task) as connection:
            note(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert bench.notes() == 0
    assert bench.run(execution.task.run.id).state is RunState.RUNNING


@pytest.mark.parametrize("how", ["canceled", "judged lost"])
def test_a_run_that_was_taken_gets_no_transaction(bench: Bench, how: str) -> None:
    (execution,) = bench.begin()
    with execution.run_io.transaction(execution.task) as connection:
        note(connection)
    take_away(bench, execution.task.run.id, how)
    entered = False
    with (
        pytest.raises(Fenced, match="nothing was written"),
        execution.run_io.transaction(execution.task) as connection,
    ):
        entered = True
    assert not entered
    assert bench.notes() == 1


def test_whoever_takes_a_run_waits_until_its_transaction_is_in(bench: Bench) -> None:
    (execution,) = bench.begin()
    run_id = execution.task.run.id
    with bench.worker.run_io.transaction(execution.task) as connection:
        canceling = in_background(lambda: Runs(database=bench.door, actor="me").cancel(run_id))
        note(connection)
        assert not canceling.done()
    assert canceling.result(30).state is RunState.CANCELED
    assert bench.notes() == 1
    with pytest.raises(Fenced), bench.worker.run_io.transaction(execution.task):
        pass


def test_a_finished_run_gets_no_transaction(bench: Bench) -> None:
    (execution,) = bench.begin()
    execution.succeed()
    bench.worker.tick()
    with pytest.raises(Fenced), execution.run_io.transaction(execution.task):
        pass
