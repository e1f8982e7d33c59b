"""Answers that get lost, and runs that are taken away: nothing runs twice, and nothing is written for another."""

import pytest

from support.factories import WORKER, ref
from support.worker_fixture import WorkerFixture, reply_lost, take_away, unreachable
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Succeeded
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.runs import moves

# --- lost answers and crashes ---------------------------------------------------------------------


def test_an_end_whose_answer_was_lost_is_accepted_once_and_retried_once(
    fixture: WorkerFixture,
) -> None:
    job_id = fixture.job(retry=RetryPolicy(max_retries=3))
    (execution,) = fixture.start(job_id=job_id)
    run_id = execution.task.run.id
    execution.log("last words")
    execution.fail()
    with reply_lost(fixture):
        fixture.worker.tick()
    assert fixture.worker.running == 1
    worked = fixture.worker.tick()
    assert [task.run.id for task in worked.refused] == [run_id]
    assert (worked.ended, worked.retries, fixture.worker.running) == ([], 0, 0)
    assert fixture.run(run_id).state is RunState.FAILED
    assert fixture.retry_of(run_id) is not None
    assert fixture.lines(run_id) == ["last words"]


def test_an_end_that_was_not_committed_is_written_the_next_time(fixture: WorkerFixture) -> None:
    (execution,) = fixture.start(job_id=fixture.job(retry=RetryPolicy(max_retries=3)))
    execution.log("last words")
    execution.fail()
    fixture.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        fixture.worker.tick()
    assert fixture.run(execution.task.run.id).state is RunState.RUNNING
    worked = fixture.worker.tick()
    assert (len(worked.ended), worked.retries) == (1, 1)
    assert fixture.lines(execution.task.run.id) == ["last words"]


def test_a_run_begun_without_an_answer_is_adopted_and_executed_once(fixture: WorkerFixture) -> None:
    (run_id,) = fixture.assign()
    with reply_lost(fixture):
        fixture.worker.tick()
    assert fixture.run(run_id).state is RunState.RUNNING
    assert fixture.executor.started == []
    worked = fixture.worker.tick(poll=False)
    assert [task.run.id for task in worked.started] == [run_id]
    fixture.worker.tick()
    fixture.executor.of(run_id).succeed({"done": True})
    fixture.worker.tick()
    run = fixture.run(run_id)
    assert (run.state, run.result, run.version) == (RunState.SUCCEEDED, {"done": True}, 4)


def test_a_beginning_that_was_not_committed_is_made_again_and_executed_once(
    fixture: WorkerFixture,
) -> None:
    (run_id,) = fixture.assign()
    fixture.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        fixture.worker.tick()
    assert fixture.run(run_id).state is RunState.ASSIGNED
    fixture.worker.tick()
    assert fixture.executor.of(run_id).task.started.version == 3


def test_a_lost_answer_about_ends_and_beginnings_together_is_made_good(
    fixture: WorkerFixture,
) -> None:
    old = fixture.start(3)
    new = fixture.assign(2)
    for execution in old[:2]:
        execution.succeed()
    with reply_lost(fixture):
        fixture.worker.tick()
    assert [fixture.run(n).state for n in new] == [RunState.RUNNING] * 2
    worked = fixture.worker.tick()
    assert sorted(task.run.id for task in worked.started) == sorted(new)
    assert len(worked.refused) == 2
    assert fixture.worker.running == 3
    assert [e.stops for e in fixture.executor.started] == [[]] * 5


def test_after_several_lost_answers_nothing_runs_twice(fixture: WorkerFixture) -> None:
    ids = fixture.assign(2)
    with reply_lost(fixture):
        fixture.worker.tick()
    with reply_lost(fixture):
        fixture.worker.tick()
    fixture.worker.tick()
    assert sorted(e.task.run.id for e in fixture.executor.started) == ids


def test_it_adopts_only_after_uncertainty(fixture: WorkerFixture) -> None:
    """Otherwise what looks like ours may be a run that it has just let go."""
    (run_id,) = fixture.assign()
    with fixture.database.write() as connection:
        moves.start(connection, worker_id=WORKER, runs=[ref(fixture.database, run_id)])
    assert fixture.worker.tick().started == []
    with unreachable(fixture):
        fixture.worker.tick()
    assert [task.run.id for task in fixture.worker.tick().started] == [run_id]


def test_what_was_begun_without_an_answer_and_taken_meanwhile_is_not_executed(
    fixture: WorkerFixture,
) -> None:
    (run_id,) = fixture.assign()
    with reply_lost(fixture):
        fixture.worker.tick()
    fixture.cancel(run_id)
    assert fixture.worker.tick().started == []
    assert fixture.executor.started == []


# --- taken away -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["canceled", "judged lost"])
@pytest.mark.parametrize("outcome", [Succeeded(result=1), Failed(reason=Reason.TIMEOUT, error="x")])
def test_an_end_that_is_refused_leaves_no_trace(
    fixture: WorkerFixture, how: str, outcome: Outcome
) -> None:
    (execution,) = fixture.start(job_id=fixture.job(retry=RetryPolicy(max_retries=3)))
    run_id = execution.task.run.id
    take_away(fixture, run_id, how)
    before, retry_before = fixture.run(run_id), fixture.retry_of(run_id)
    execution.log("too late")
    execution.progress(7, 9)
    execution.end(outcome)
    worked = fixture.worker.tick(poll=False)
    assert [task.run.id for task in worked.refused] == [run_id]
    assert (worked.ended, worked.retries) == ([], 0)
    assert fixture.run(run_id) == before
    assert fixture.lines(run_id) == []
    assert fixture.retry_of(run_id) == retry_before
    assert (retry_before is not None) == (how == "judged lost")
    assert fixture.worker.running == 0


def test_a_canceled_run_is_noticed_and_stopped_and_nothing_of_it_is_written(
    fixture: WorkerFixture,
) -> None:
    canceled, other = fixture.start(2)
    fixture.cancel(canceled.task.run.id)
    after = fixture.run(canceled.task.run.id)
    assert fixture.worker.tick(poll=False).lost == []
    worked = fixture.worker.tick()
    assert [task.run.id for task in worked.lost] == [canceled.task.run.id]
    assert canceled.stops == [(StopCause.FENCED, False)]
    assert other.stops == []
    assert fixture.worker.running == 2
    canceled.log("too late")
    canceled.obey()
    worked = fixture.worker.tick()
    assert (worked.ended, worked.refused, fixture.worker.running) == ([], [], 1)
    assert fixture.run(canceled.task.run.id) == after
    assert fixture.lines(canceled.task.run.id) == []


def test_a_worker_that_wakes_up_after_the_verdict_stops_everything_and_begins_nothing(
    fixture: WorkerFixture,
) -> None:
    executions = fixture.start(2)
    (given,) = fixture.assign()
    take_away(fixture, executions[0].task.run.id, "judged lost")
    worked = fixture.worker.tick()
    assert len(worked.lost) == 2
    assert [e.stops for e in executions] == [[(StopCause.FENCED, False)]] * 2
    assert worked.started == []
    assert fixture.run(given).state is RunState.ORPHANED
    for execution in executions:
        execution.obey()
    fixture.worker.tick()
    assert fixture.worker.running == 0


def test_an_end_in_the_same_tick_as_its_loss_is_refused_and_not_stopped(
    fixture: WorkerFixture,
) -> None:
    (execution,) = fixture.start()
    fixture.cancel(execution.task.run.id)
    execution.succeed()
    worked = fixture.worker.tick()
    assert (len(worked.refused), worked.lost, execution.stops) == (1, [], [])
