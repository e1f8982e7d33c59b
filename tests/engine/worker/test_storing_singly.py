"""What the database refuses of one run does not keep the other runs of a worker from being stored."""

import pytest

from support.scripted_executors import ScriptedExecution
from support.worker_fixture import WorkerFixture
from tsuzuki.engine.outcome import Failed
from tsuzuki.engine.worker import worker as worker_module
from tsuzuki.engine.worker.output_buffer import BufferedOutput
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.run_limits import (
    CUT_MARK,
    ERROR_BYTES_MAX,
    LOG_LINE_BYTES_MAX,
    RESULT_BYTES_MAX,
)
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.logs import LogLine

FAILED, RUNNING, SUCCEEDED = RunState.FAILED, RunState.RUNNING, RunState.SUCCEEDED
NOT_JSON = {1, 2}


def poison_log(fixture: WorkerFixture, execution: ScriptedExecution) -> None:
    """A line without a time: its column refuses it, on both databases."""
    line = LogLine(seq=1, at=None, stream="log", body="lost")  # type: ignore[arg-type]
    fixture.worker.output.put_back(BufferedOutput(lines=[(execution.task.started, line)]))


def test_of_three_ends_the_one_that_cannot_be_stored_fails(fixture: WorkerFixture) -> None:
    first, poisoned, third = fixture.start(3)
    poisoned.log("a line of its own")
    poisoned.progress(3, 4)
    first.succeed(result=1)
    poisoned.succeed(result=NOT_JSON)
    third.succeed(result=3)
    step = fixture.worker.tick()
    assert (len(step.ended), step.problem) == (3, None)
    found = [fixture.run(one.task.run.id) for one in (first, poisoned, third)]
    assert [run.state for run in found] == [SUCCEEDED, FAILED, SUCCEEDED]
    assert [run.result for run in found] == [1, None, 3]
    assert found[1].reason is Reason.HANDLER_FAILED
    assert "JSON" in (found[1].error or "")
    assert found[1].progress_processed == 3
    assert fixture.lines(found[1].id) == ["a line of its own"]
    assert fixture.worker.running == 0
    (following,) = fixture.start()
    following.succeed()
    assert len(fixture.worker.tick().ended) == 1


def test_a_result_that_is_too_large_fails_its_run_only(fixture: WorkerFixture) -> None:
    """An executor that does not check it itself."""
    too_large, other = fixture.start(2)
    too_large.succeed(result="x" * RESULT_BYTES_MAX)
    other.succeed(result=1)
    assert fixture.worker.tick().problem is None
    found = fixture.run(too_large.task.run.id)
    assert (found.state, found.result) == (FAILED, None)
    assert str(RESULT_BYTES_MAX) in (found.error or "")
    assert fixture.run(other.task.run.id).state is SUCCEEDED


def test_an_error_is_cut_at_its_limit(fixture: WorkerFixture) -> None:
    long, short = fixture.start(2)
    long.fail(error="é" * ERROR_BYTES_MAX)
    short.fail(error="é" * (ERROR_BYTES_MAX // 2))
    assert len(fixture.worker.tick().ended) == 2
    cut = fixture.run(long.task.run.id).error or ""
    assert len(cut.encode()) <= ERROR_BYTES_MAX
    assert cut.startswith("é" * (ERROR_BYTES_MAX // 2 - len(CUT_MARK)))
    assert cut.endswith(CUT_MARK)
    assert fixture.run(short.task.run.id).error == "é" * (ERROR_BYTES_MAX // 2)


@pytest.mark.parametrize("character", ["\x00", "\udfff"])
def test_characters_that_cannot_be_stored_are_replaced_wherever_they_are(
    fixture: WorkerFixture, character: str
) -> None:
    failing, returning = fixture.start(2)
    failing.log(f"a{character}é")
    failing.log(f"a{character}" * LOG_LINE_BYTES_MAX)
    failing.fail(error=f"a{character}é")
    returning.succeed(result={"file": f"a{character}é"})
    step = fixture.worker.tick()
    assert (len(step.ended), step.problem, step.replaced) == (2, None, 0)
    found = fixture.run(failing.task.run.id)
    assert found.error == "a\ufffdé"
    assert fixture.lines(found.id)[0] == "a\ufffdé"
    # JSON has an escape for NUL, and so it is stored as it is.
    expected = "a\x00é" if character == "\x00" else "a\ufffdé"
    assert fixture.run(returning.task.run.id).result == {"file": expected}


def test_output_that_cannot_be_stored_is_replaced_by_a_notice(fixture: WorkerFixture) -> None:
    poisoned, other = fixture.start(2)
    poison_log(fixture, poisoned)
    other.log("kept")
    other.succeed()
    assert fixture.worker.tick(poll=False).problem is None
    assert fixture.run(other.task.run.id).state is SUCCEEDED
    assert fixture.lines(other.task.run.id) == ["kept"]
    run_id = poisoned.task.run.id
    assert fixture.run(run_id).state is RUNNING
    assert len(fixture.lines(run_id)) == 1
    assert "lost" not in fixture.lines(run_id)
    assert not fixture.worker.output
    poisoned.succeed()
    fixture.worker.tick()
    assert fixture.run(run_id).state is SUCCEEDED


def test_a_failure_stays_the_failure_that_it_was(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start()
    execution.end(Failed(reason=Reason.HANDLER_UNKNOWN, error="gone", result=NOT_JSON))
    fixture.worker.tick()
    run = fixture.run(execution.task.run.id)
    assert (run.state, run.reason) == (FAILED, Reason.HANDLER_UNKNOWN)


def test_if_each_run_can_be_stored_the_step_has_the_problem(
    fixture: WorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, going_on = fixture.start(2)
    ended.succeed()
    going_on.log("one")

    def break_down(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "_check_ownership", break_down)
        step = fixture.worker.tick()
    assert isinstance(step.problem, ZeroDivisionError)
    assert fixture.run(ended.task.run.id).state is SUCCEEDED
    assert fixture.lines(going_on.task.run.id) == ["one"]
    assert fixture.worker.tick().problem is None


def test_what_fails_for_every_run_is_kept_as_it_is(
    fixture: WorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, going_on = fixture.start(2)
    ended.log("last")
    ended.succeed(result=7)
    going_on.log("one")

    def break_down(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(worker_module, "write_output", break_down)
        assert isinstance(fixture.worker.tick().problem, ZeroDivisionError)
    assert fixture.run(ended.task.run.id).state is RUNNING
    fixture.worker.tick()
    run = fixture.run(ended.task.run.id)
    assert (run.state, run.result, fixture.lines(run.id)) == (SUCCEEDED, 7, ["last"])
    assert fixture.lines(going_on.task.run.id) == ["one"]


def test_an_outage_between_two_runs_loses_nothing(fixture: WorkerFixture) -> None:
    first, poisoned = fixture.start(2)
    first.log("one")
    first.succeed()
    poisoned.log("two")
    poisoned.succeed(result=NOT_JSON)
    fixture.faulty_database.replies_to_lose = 1
    assert isinstance(fixture.worker.tick().problem, Unreachable)
    fixture.worker.tick()
    assert fixture.lines(first.task.run.id) == ["one"]
    assert fixture.run(first.task.run.id).state is SUCCEEDED
    assert fixture.lines(poisoned.task.run.id) == ["two"]
    assert fixture.run(poisoned.task.run.id).state is FAILED
