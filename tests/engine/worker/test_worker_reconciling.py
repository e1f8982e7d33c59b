"""Lost replies, and runs that are taken away: no run executes twice, and a run of another worker is not written."""

import pytest

from support.factories import WORKER, ref
from support.worker_fixture import WorkerFixture, reply_lost, take_away, unreachable
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Succeeded
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.runs import cancel_requests, moves

# --- lost replies and crashes ---------------------------------------------------------------------


def test_an_end_whose_reply_was_lost_is_accepted_once_and_retried_once(
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
    step = fixture.worker.tick()
    assert [task.run.id for task in step.refused] == [run_id]
    assert (step.ended, step.retries, fixture.worker.running) == ([], 0, 0)
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
    step = fixture.worker.tick()
    assert (len(step.ended), step.retries) == (1, 1)
    assert fixture.lines(execution.task.run.id) == ["last words"]


def test_a_run_started_without_a_reply_is_adopted_and_executed_once(fixture: WorkerFixture) -> None:
    (run_id,) = fixture.assign()
    with reply_lost(fixture):
        fixture.worker.tick()
    assert fixture.run(run_id).state is RunState.RUNNING
    assert fixture.executor.started == []
    step = fixture.worker.tick(poll=False)
    assert [task.run.id for task in step.started] == [run_id]
    fixture.worker.tick()
    fixture.executor.of(run_id).succeed({"done": True})
    fixture.worker.tick()
    run = fixture.run(run_id)
    assert (run.state, run.result, run.version) == (RunState.SUCCEEDED, {"done": True}, 4)


def test_a_start_that_was_not_committed_is_made_again_and_executed_once(
    fixture: WorkerFixture,
) -> None:
    (run_id,) = fixture.assign()
    fixture.faulty_database.crash_before_commit = True
    with pytest.raises(Unreachable):
        fixture.worker.tick()
    assert fixture.run(run_id).state is RunState.ASSIGNED
    fixture.worker.tick()
    assert fixture.executor.of(run_id).task.started.version == 3


def test_a_lost_reply_about_ends_and_starts_together_is_reconciled(
    fixture: WorkerFixture,
) -> None:
    old = fixture.start(3)
    new = fixture.assign(2)
    for execution in old[:2]:
        execution.succeed()
    with reply_lost(fixture):
        fixture.worker.tick()
    assert [fixture.run(n).state for n in new] == [RunState.RUNNING] * 2
    step = fixture.worker.tick()
    assert sorted(task.run.id for task in step.started) == sorted(new)
    assert len(step.refused) == 2
    assert fixture.worker.running == 3
    assert [e.stops for e in fixture.executor.started] == [[]] * 5


def test_after_several_lost_replies_nothing_runs_twice(fixture: WorkerFixture) -> None:
    ids = fixture.assign(2)
    with reply_lost(fixture):
        fixture.worker.tick()
    with reply_lost(fixture):
        fixture.worker.tick()
    fixture.worker.tick()
    assert sorted(e.task.run.id for e in fixture.executor.started) == ids


def test_it_adopts_only_after_a_lost_reply(fixture: WorkerFixture) -> None:
    """Otherwise what looks like ours may be a run that it has just let go."""
    (run_id,) = fixture.assign()
    with fixture.database.write() as connection:
        moves.start(connection, worker_id=WORKER, runs=[ref(fixture.database, run_id)])
    assert fixture.worker.tick().started == []
    with unreachable(fixture):
        fixture.worker.tick()
    assert [task.run.id for task in fixture.worker.tick().started] == [run_id]


def test_what_was_started_without_a_reply_and_taken_meanwhile_is_not_executed(
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
    step = fixture.worker.tick(poll=False)
    assert [task.run.id for task in step.refused] == [run_id]
    assert (step.ended, step.retries) == ([], 0)
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
    step = fixture.worker.tick()
    assert [task.run.id for task in step.lost] == [canceled.task.run.id]
    assert canceled.stops == [(StopCause.FENCED, False)]
    assert other.stops == []
    assert fixture.worker.running == 2
    canceled.log("too late")
    canceled.obey()
    step = fixture.worker.tick()
    assert (step.ended, step.refused, fixture.worker.running) == ([], [], 1)
    assert fixture.run(canceled.task.run.id) == after
    assert fixture.lines(canceled.task.run.id) == []


@pytest.mark.parametrize(
    ("reason", "cause"),
    [(Reason.OPERATOR, StopCause.CANCELED), (Reason.REPLACED, StopCause.REPLACED)],
)
def test_a_run_whose_cancel_is_requested_is_stopped_and_ends_as_canceled(
    fixture: WorkerFixture, reason: Reason, cause: StopCause
) -> None:
    requested, other = fixture.start(2, job_id=fixture.job(retry=RetryPolicy(max_retries=3)))
    run_id = requested.task.run.id
    with fixture.database.write() as connection:
        cancel_requests.add(connection, [run_id], reason=reason, requested_by="ada")
    fixture.worker.tick()
    assert (requested.stops, other.stops) == ([(cause, False)], [])
    requested.obey()
    fixture.worker.tick()
    after = fixture.run(run_id)
    assert (after.state, after.reason) == (RunState.CANCELED, reason)
    assert fixture.retry_of(run_id) is None


def test_a_run_that_fails_after_its_cancel_was_requested_is_not_retried(
    fixture: WorkerFixture,
) -> None:
    (requested,) = fixture.start(job_id=fixture.job(retry=RetryPolicy(max_retries=3)))
    run_id = requested.task.run.id
    with fixture.database.write() as connection:
        cancel_requests.add(connection, [run_id], reason=Reason.OPERATOR, requested_by="ada")
    requested.fail()
    assert fixture.worker.tick().retries == 0
    assert fixture.run(run_id).state is RunState.FAILED
    assert fixture.retry_of(run_id) is None


def test_a_worker_that_wakes_after_it_was_judged_lost_stops_everything_and_starts_nothing(
    fixture: WorkerFixture,
) -> None:
    executions = fixture.start(2)
    (assigned,) = fixture.assign()
    take_away(fixture, executions[0].task.run.id, "judged lost")
    step = fixture.worker.tick()
    assert len(step.lost) == 2
    assert [e.stops for e in executions] == [[(StopCause.FENCED, False)]] * 2
    assert step.started == []
    assert fixture.run(assigned).state is RunState.ORPHANED
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
    step = fixture.worker.tick()
    assert (len(step.refused), step.lost, execution.stops) == (1, [], [])
