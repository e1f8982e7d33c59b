"""Answers that get lost, and runs that are taken away: nothing runs twice, and nothing is written for another."""

import pytest

from support.factories import WORKER, ref
from support.worker_bench import Bench, away, lost, take_away
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Succeeded
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.runs import moves

# --- lost answers and crashes ---------------------------------------------------------------------


def test_an_end_whose_answer_was_lost_is_accepted_once_and_retried_once(bench: Bench) -> None:
    job_id = bench.job(retry=RetryPolicy(max_retries=3))
    (execution,) = bench.begin(job_id=job_id)
    run_id = execution.task.run.id
    execution.log("last words")
    execution.fail()
    with lost(bench):
        bench.worker.tick()
    assert bench.worker.running == 1
    worked = bench.worker.tick()
    assert [task.run.id for task in worked.refused] == [run_id]
    assert (worked.ended, worked.retries, bench.worker.running) == ([], 0, 0)
    assert bench.run(run_id).state is RunState.FAILED
    assert bench.retry_of(run_id) is not None
    assert bench.lines(run_id) == ["last words"]


def test_an_end_that_was_not_committed_is_written_the_next_time(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(retry=RetryPolicy(max_retries=3)))
    execution.log("last words")
    execution.fail()
    bench.door.crash_before_commit = True
    with pytest.raises(Unreachable):
        bench.worker.tick()
    assert bench.run(execution.task.run.id).state is RunState.RUNNING
    worked = bench.worker.tick()
    assert (len(worked.ended), worked.retries) == (1, 1)
    assert bench.lines(execution.task.run.id) == ["last words"]


def test_a_run_begun_without_an_answer_is_adopted_and_executed_once(bench: Bench) -> None:
    (run_id,) = bench.give()
    with lost(bench):
        bench.worker.tick()
    assert bench.run(run_id).state is RunState.RUNNING
    assert bench.executor.begun == []
    worked = bench.worker.tick(poll=False)
    assert [task.run.id for task in worked.started] == [run_id]
    bench.worker.tick()
    bench.executor.of(run_id).succeed({"done": True})
    bench.worker.tick()
    run = bench.run(run_id)
    assert (run.state, run.result, run.version) == (RunState.SUCCEEDED, {"done": True}, 4)


def test_a_beginning_that_was_not_committed_is_made_again_and_executed_once(bench: Bench) -> None:
    (run_id,) = bench.give()
    bench.door.crash_before_commit = True
    with pytest.raises(Unreachable):
        bench.worker.tick()
    assert bench.run(run_id).state is RunState.ASSIGNED
    bench.worker.tick()
    assert bench.executor.of(run_id).task.started.version == 3


def test_a_lost_answer_about_ends_and_beginnings_together_is_made_good(bench: Bench) -> None:
    old = bench.begin(3)
    new = bench.give(2)
    for execution in old[:2]:
        execution.succeed()
    with lost(bench):
        bench.worker.tick()
    assert [bench.run(n).state for n in new] == [RunState.RUNNING] * 2
    worked = bench.worker.tick()
    assert sorted(task.run.id for task in worked.started) == sorted(new)
    assert len(worked.refused) == 2
    assert bench.worker.running == 3
    assert [e.stops for e in bench.executor.begun] == [[]] * 5


def test_after_several_lost_answers_nothing_runs_twice(bench: Bench) -> None:
    ids = bench.give(2)
    with lost(bench):
        bench.worker.tick()
    with lost(bench):
        bench.worker.tick()
    bench.worker.tick()
    assert sorted(e.task.run.id for e in bench.executor.begun) == ids


def test_it_adopts_only_after_uncertainty(bench: Bench) -> None:
    """Otherwise what looks like ours may be a run that it has just let go."""
    (run_id,) = bench.give()
    with bench.truth.write() as connection:
        moves.start(connection, worker_id=WORKER, runs=[ref(bench.truth, run_id)])
    assert bench.worker.tick().started == []
    with away(bench):
        bench.worker.tick()
    assert [task.run.id for task in bench.worker.tick().started] == [run_id]


def test_what_was_begun_without_an_answer_and_taken_meanwhile_is_not_executed(
    bench: Bench,
) -> None:
    (run_id,) = bench.give()
    with lost(bench):
        bench.worker.tick()
    bench.cancel(run_id)
    assert bench.worker.tick().started == []
    assert bench.executor.begun == []


# --- taken away -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["canceled", "judged lost"])
@pytest.mark.parametrize("outcome", [Succeeded(result=1), Failed(reason=Reason.TIMEOUT, error="x")])
def test_an_end_that_is_refused_leaves_no_trace(bench: Bench, how: str, outcome: Outcome) -> None:
    (execution,) = bench.begin(job_id=bench.job(retry=RetryPolicy(max_retries=3)))
    run_id = execution.task.run.id
    take_away(bench, run_id, how)
    before, retry_before = bench.run(run_id), bench.retry_of(run_id)
    execution.log("too late")
    execution.progress(7, 9)
    execution.end(outcome)
    worked = bench.worker.tick(poll=False)
    assert [task.run.id for task in worked.refused] == [run_id]
    assert (worked.ended, worked.retries) == ([], 0)
    assert bench.run(run_id) == before
    assert bench.lines(run_id) == []
    assert bench.retry_of(run_id) == retry_before
    assert (retry_before is not None) == (how == "judged lost")
    assert bench.worker.running == 0


def test_a_canceled_run_is_noticed_and_stopped_and_nothing_of_it_is_written(bench: Bench) -> None:
    canceled, other = bench.begin(2)
    bench.cancel(canceled.task.run.id)
    after = bench.run(canceled.task.run.id)
    assert bench.worker.tick(poll=False).lost == []
    worked = bench.worker.tick()
    assert [task.run.id for task in worked.lost] == [canceled.task.run.id]
    assert canceled.stops == [(StopCause.FENCED, False)]
    assert other.stops == []
    assert bench.worker.running == 2
    canceled.log("too late")
    canceled.obey()
    worked = bench.worker.tick()
    assert (worked.ended, worked.refused, bench.worker.running) == ([], [], 1)
    assert bench.run(canceled.task.run.id) == after
    assert bench.lines(canceled.task.run.id) == []


def test_a_worker_that_wakes_up_after_the_verdict_stops_everything_and_begins_nothing(
    bench: Bench,
) -> None:
    executions = bench.begin(2)
    (given,) = bench.give()
    take_away(bench, executions[0].task.run.id, "judged lost")
    worked = bench.worker.tick()
    assert len(worked.lost) == 2
    assert [e.stops for e in executions] == [[(StopCause.FENCED, False)]] * 2
    assert worked.started == []
    assert bench.run(given).state is RunState.ORPHANED
    for execution in executions:
        execution.obey()
    bench.worker.tick()
    assert bench.worker.running == 0


def test_an_end_in_the_same_tick_as_its_loss_is_refused_and_not_stopped(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.cancel(execution.task.run.id)
    execution.succeed()
    worked = bench.worker.tick()
    assert (len(worked.refused), worked.lost, execution.stops) == (1, [], [])
