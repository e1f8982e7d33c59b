"""A worker executes what is its own, says how it ended exactly once, and writes nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import select

from support.checker import check_history
from support.makers import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    new_run,
    read_run,
    ref,
    spec,
    take_lead,
)
from support.moving_clock import NOON, MovingClock
from support.scripted import ScriptedExecution, ScriptedExecutor
from support.statements import recorded
from support.threads import in_background
from support.unreliable import UnreliableDatabase
from tsuzuki.engine import worker as worker_module
from tsuzuki.engine.desk import Papers
from tsuzuki.engine.intake import Intake
from tsuzuki.engine.outcome import Failed, Outcome, StopCause, Stopped, Succeeded
from tsuzuki.engine.rescuer import Rescuer
from tsuzuki.engine.role import Identity
from tsuzuki.engine.worked import Worked
from tsuzuki.engine.worker import Worker
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Fenced, Unreachable, UsageError
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.events import Events
from tsuzuki.services.runs import Runs
from tsuzuki.store import audit, dispatch, jobs, logs, moves, runs, workers
from tsuzuki.store.database import Database
from tsuzuki.store.leadership import Term
from tsuzuki.store.tables import job_runs
from tsuzuki.store.tables import workers as table_of_workers

ME = Identity(id=WORKER, host="host", pid=1, capacity=3, tags=frozenset(), software_version="test")


class Bench:
    """A worker on a database that can fail, with everything that makes work for it."""

    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.truth = database
        self.clock = clock
        self.door = UnreliableDatabase(database)
        self.executor = ScriptedExecutor()
        self.settings = EngineSettings(log_bytes_max_per_run=1024)
        self.term: Term = take_lead(database, lease_seconds=1_000_000)
        self.worker = self.a_worker(clock)
        self.worker.register()

    def a_worker(self, clock: ManualClock, identity: Identity = ME) -> Worker:
        return Worker(
            identity=identity,
            database=self.door,
            executor=self.executor,
            clock=clock,
            random=Random(1),
            settings=lambda: self.settings,
            wake=lambda: None,
        )

    def job(self, name: str = "free", **changes: Any) -> int:
        return add_job(
            self.truth, spec(name, concurrency_policy=ConcurrencyPolicy.ALLOW, **changes)
        )

    def give(self, count: int = 1, *, job_id: int | None = None, **changes: Any) -> list[int]:
        """So many new runs, assigned to the worker."""
        with self.truth.read() as connection:
            known = jobs.get_by_name(connection, "free")
        job_id = job_id or (known.id if known else self.job())
        with self.truth.write() as connection:
            born = runs.create(connection, [new_run(self.truth, job_id, **changes)] * count)
            ids = [run_id for run_id in born if run_id is not None]
            given = [
                moves.Assignment(
                    run=moves.RunRef(id=n, version=1), worker_id=self.worker.identity.id
                )
                for n in ids
            ]
            assert len(moves.assign(connection, term=self.term, assignments=given)) == count
        return ids

    def begin(self, count: int = 1, **changes: Any) -> list[ScriptedExecution]:
        """So many new executions under way."""
        ids = self.give(count, **changes)
        self.worker.tick()
        return [self.executor.of(run_id) for run_id in ids]

    def run(self, run_id: int) -> Run:
        run: Run = read_run(self.truth, run_id)
        return run

    def cancel(self, run_id: int) -> None:
        Runs(database=self.truth, actor="operator").cancel(run_id)

    def lines(self, run_id: int) -> list[str]:
        with self.truth.read() as connection:
            return [line.body for line in logs.read(connection, run_id=run_id)]

    def retry_of(self, run_id: int) -> Run | None:
        with self.truth.read() as connection:
            return runs.get_by_key(connection, f"retry:{run_id}")

    def notes(self) -> int:
        """How many rows a handler has written in its transactions."""
        with self.truth.read() as connection:
            return len(audit.find(connection, object_type="handler"))


@pytest.fixture
def bench(database: Database, clock: MovingClock) -> Iterator[Bench]:
    yield Bench(database, clock)
    check_history(database)


@contextmanager
def lost(bench: Bench) -> Iterator[None]:
    """What is written meanwhile is committed, and nobody hears of it."""
    bench.door.replies_to_lose = 1
    with pytest.raises(Unreachable):
        yield


@contextmanager
def away(bench: Bench) -> Iterator[None]:
    bench.door.is_away = True
    with pytest.raises(Unreachable):
        yield
    bench.door.is_away = False


def note(connection: Any) -> None:
    audit.record(connection, actor="me", action="write", object_type="handler", object_id="1")


# --- beginning ------------------------------------------------------------------------------------


def test_what_was_given_to_it_begins_and_nothing_else(bench: Bench) -> None:
    (mine,) = bench.give()
    pending = create_run(bench.truth, bench.run(mine).job_definition_id).id
    add_worker(bench.truth, "other")
    theirs = create_run(bench.truth, bench.run(mine).job_definition_id)
    with bench.truth.write() as connection:
        assignment = moves.Assignment(run=theirs, worker_id="other")
        moves.assign(connection, term=bench.term, assignments=[assignment])
    worked = bench.worker.tick()
    assert [task.run.id for task in worked.started] == [mine]
    assert [e.task.run.id for e in bench.executor.begun] == [mine]
    run = bench.run(mine)
    assert (run.state, run.started_at, run.leader_epoch) == (RunState.RUNNING, NOON, 1)
    assert bench.run(pending).state is RunState.PENDING
    assert bench.run(theirs.id).state is RunState.ASSIGNED


def test_it_never_executes_more_than_its_capacity_and_the_most_urgent_first(bench: Bench) -> None:
    later = bench.give(2)
    urgent = bench.give(2, priority=5)
    bench.worker.tick()
    assert [e.task.run.id for e in bench.executor.begun] == [*urgent, later[0]]
    assert (bench.worker.running, bench.worker.free) == (3, 0)
    bench.worker.tick()
    assert len(bench.executor.begun) == 3
    bench.executor.of(urgent[0]).succeed()
    bench.worker.tick()
    assert bench.executor.last.task.run.id == later[1]


def test_a_run_begins_with_the_definition_as_it_is_then(bench: Bench) -> None:
    job_id = bench.job(timeout_seconds=5)
    bench.begin(job_id=job_id)
    with bench.truth.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=replace(job.spec, timeout_seconds=50))
    (execution,) = bench.begin(job_id=job_id)
    assert execution.task.spec.timeout_seconds == 50


def test_the_payload_of_the_event_reaches_the_task(bench: Bench) -> None:
    job_id = bench.job(on_event="pushed")
    Events(database=bench.truth).emit("pushed", {"branch": "main", "commits": [1, 2]})
    Intake(database=bench.truth).tick(bench.term)
    with bench.truth.write() as connection:
        (due,) = dispatch.due_runs(connection, limit=10)
        assignment = moves.Assignment(run=due.ref, worker_id=WORKER)
        moves.assign(connection, term=bench.term, assignments=[assignment])
    bench.worker.tick()
    task = bench.executor.last.task
    assert task.run.job_definition_id == job_id
    assert task.event == {"branch": "main", "commits": [1, 2]}
    (plain,) = bench.begin(job_id=job_id)
    assert plain.task.event is None


def test_a_run_taken_from_it_before_it_began_is_not_begun(bench: Bench) -> None:
    canceled, given_back = bench.give(2)
    bench.cancel(canceled)
    with bench.truth.write() as connection:
        moves.hand_back(connection, worker_id=WORKER, runs=[ref(bench.truth, given_back)])
    assert bench.worker.tick().started == []
    assert bench.executor.begun == []


@pytest.mark.parametrize("state", [WorkerState.DETACHED, WorkerState.GONE])
def test_a_worker_that_is_cut_off_begins_nothing(bench: Bench, state: WorkerState) -> None:
    (run_id,) = bench.give()
    with bench.truth.write() as connection:
        if state is WorkerState.DETACHED:
            workers.expel(connection, [WORKER])
        else:
            workers.leave(connection, WORKER)
    assert bench.worker.tick() == Worked()
    assert bench.run(run_id).state is RunState.ASSIGNED


def test_an_executor_that_cannot_begin_fails_that_run_and_begins_the_others(bench: Bench) -> None:
    first, second, third = bench.give(3)

    def refuse(execution: ScriptedExecution) -> None:
        if execution.task.run.id == second:
            raise OSError("can't start new thread")

    bench.executor.on_begin = refuse
    bench.worker.tick()
    assert bench.worker.running == 3
    worked = bench.worker.tick()
    assert [task.run.id for task, _ in worked.ended] == [second]
    failed = bench.run(second)
    assert (failed.state, failed.reason) == (RunState.FAILED, Reason.HANDLER_FAILED)
    assert "can't start new thread" in (failed.error or "")
    for run_id in (first, third):
        bench.executor.of(run_id).succeed()
    bench.worker.tick()
    assert bench.worker.running == 0


def test_a_worker_that_was_told_to_stop_everything_stops_also_what_it_is_just_beginning(
    bench: Bench,
) -> None:
    """The order comes from the heartbeat's thread, at any moment of a tick."""
    during_begin, after_commit = bench.give(2)
    order = {"cause": StopCause.NOT_CONFIRMED, "at_once": True}

    def stop_between(execution: ScriptedExecution) -> None:
        if execution.task.run.id == during_begin:
            bench.worker.stop_all(**order)  # type: ignore[arg-type]

    bench.executor.on_begin = stop_between
    bench.worker.tick()
    for run_id in (during_begin, after_commit):
        assert (StopCause.NOT_CONFIRMED, True) in bench.executor.of(run_id).stops


def test_after_becoming_another_the_old_order_to_stop_is_forgotten(bench: Bench) -> None:
    bench.worker.stop_all(StopCause.NOT_CONFIRMED, at_once=True)
    bench.worker.become(replace(ME, id="new"))
    (execution,) = bench.begin()
    assert execution.stops == []


# --- ending: one outcome, one move ----------------------------------------------------------------

ENDINGS: list[tuple[Outcome, RunState, Reason | None, str | None]] = [
    (Succeeded(result={"n": 1}), RunState.SUCCEEDED, None, None),
    (Succeeded(), RunState.SUCCEEDED, None, None),
    *(
        (Failed(reason=reason, error="why"), RunState.FAILED, reason, "why")
        for reason in (Reason.HANDLER_FAILED, Reason.HANDLER_UNKNOWN, Reason.ARGUMENTS_INVALID)
    ),
    (
        Stopped(cause=StopCause.TIMEOUT),
        RunState.TIMED_OUT,
        Reason.TIMEOUT,
        "it ran longer than 60.0 s",
    ),
    (
        Stopped(cause=StopCause.SHUTDOWN),
        RunState.FAILED,
        Reason.WORKER_SHUTDOWN,
        "its worker was shut down",
    ),
    (
        Stopped(cause=StopCause.NOT_CONFIRMED),
        RunState.FAILED,
        Reason.NOT_CONFIRMED,
        "its worker could not confirm in time that it may go on",
    ),
]


def test_each_outcome_is_one_end(bench: Bench) -> None:
    bench.worker.identity = replace(ME, capacity=len(ENDINGS))
    executions = bench.begin(len(ENDINGS), job_id=bench.job(timeout_seconds=60))
    for execution, (outcome, *_) in zip(executions, ENDINGS, strict=True):
        execution.end(outcome)
    worked = bench.worker.tick()
    assert len(worked.ended) == len(ENDINGS)
    for execution, (outcome, state, reason, error) in zip(executions, ENDINGS, strict=True):
        run = bench.run(execution.task.run.id)
        assert (run.state, run.reason, run.error) == (state, reason, error)
        assert run.finished_at == NOON
        assert run.result == (outcome.result if isinstance(outcome, Succeeded) else None)
    assert bench.worker.running == 0
    assert bench.worker.tick(look_around=False) == Worked()


@pytest.mark.parametrize("cause", [StopCause.CANCELED, StopCause.FENCED])
def test_a_run_that_is_not_ours_any_more_is_not_ended_by_us(bench: Bench, cause: StopCause) -> None:
    (execution,) = bench.begin()
    execution.end(Stopped(cause=cause))
    with recorded(bench.truth) as sent:
        worked = bench.worker.tick(look_around=False)
    assert (worked, sent, bench.worker.running) == (Worked(), [], 0)
    assert bench.run(execution.task.run.id).state is RunState.RUNNING


def test_a_slot_is_free_only_after_the_database_accepted_the_end(bench: Bench) -> None:
    executions = bench.begin(3)
    (next_id,) = bench.give()
    executions[0].succeed()
    with away(bench):
        bench.worker.tick()
    assert (bench.worker.running, bench.worker.free) == (3, 0)
    assert bench.worker.has_news()
    assert len(bench.executor.begun) == 3
    worked = bench.worker.tick()
    assert [task.run.id for task, _ in worked.ended] == [executions[0].task.run.id]
    assert [task.run.id for task in worked.started] == [next_id]
    assert bench.worker.running == 3
    assert not bench.worker.has_news()


def test_many_ends_are_written_in_bounded_batches(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "ENDINGS_MAX", 2)
    for execution in bench.begin(3):
        execution.succeed()
    assert [len(bench.worker.tick().ended) for _ in range(3)] == [2, 1, 0]


def test_a_run_ends_under_the_epoch_it_began_under_whoever_leads_by_then(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.term = depose_and_take(bench.truth)
    execution.succeed()
    assert len(bench.worker.tick().ended) == 1
    (later,) = bench.begin()
    assert later.task.started.epoch == bench.term.epoch == 2
    later.succeed()
    assert len(bench.worker.tick().ended) == 1


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
    worked = bench.worker.tick(look_around=False)
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


def take_away(bench: Bench, run_id: int, how: str) -> None:
    if how == "canceled":
        bench.cancel(run_id)
        return
    bench.clock.advance(bench.settings.lost_after_seconds)
    Rescuer(database=bench.truth, settings=lambda: bench.settings, random=Random(1)).tick(
        bench.term
    )


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
    worked = bench.worker.tick(look_around=False)
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
    assert bench.worker.tick(look_around=False).lost == []
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


# --- time -----------------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_is_stopped_once_and_ends_as_timed_out(bench: Bench) -> None:
    job_id = bench.job(timeout_seconds=30.0, retry=RetryPolicy(max_retries=1, jitter=0))
    (execution,) = bench.begin(job_id=job_id)
    assert bench.worker.seconds_to_next_deadline() == 30.0
    bench.clock.advance(29.999)
    bench.worker.tick()
    assert execution.stops == []
    bench.clock.advance(0.001)
    bench.worker.tick()
    bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]
    assert bench.worker.seconds_to_next_deadline() is None
    execution.obey()
    assert bench.worker.tick().retries == 1
    run = bench.run(execution.task.run.id)
    assert (run.state, run.reason) == (RunState.TIMED_OUT, Reason.TIMEOUT)


def test_a_run_whose_time_is_up_before_it_has_begun_is_stopped_when_it_has(bench: Bench) -> None:
    """It may be begun by one thread while another looks for what takes too long."""

    def look_meanwhile(_execution: ScriptedExecution) -> None:
        bench.clock.advance(6)
        bench.worker._slots.stop_overdue()

    bench.executor.on_begin = look_meanwhile
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=5))
    bench.worker.tick()
    bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_step_of_the_wall_clock_is_not_time_that_a_run_has_taken(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=30.0))
    bench.clock.step(3600)
    bench.worker.tick()
    assert execution.stops == []
    bench.clock.step(-7200)
    bench.clock.advance(30)
    bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_run_is_stopped_in_time_though_the_database_is_away(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=30.0))
    bench.clock.advance(30)
    with away(bench):
        bench.worker.tick()
    assert execution.stops == [(StopCause.TIMEOUT, False)]


def test_a_run_that_ended_by_itself_before_it_could_be_stopped_has_ended_so(bench: Bench) -> None:
    (execution,) = bench.begin(job_id=bench.job(timeout_seconds=30.0))
    bench.clock.advance(30)
    bench.worker.tick()
    execution.succeed("just made it")
    bench.worker.tick()
    assert bench.run(execution.task.run.id).result == "just made it"


# --- what handlers say ----------------------------------------------------------------------------


def test_lines_are_kept_in_the_order_said_across_outages_and_lost_answers(bench: Bench) -> None:
    (execution,) = bench.begin()
    run_id = execution.task.run.id
    execution.log("one")
    execution.log("two", stream="stderr")
    with lost(bench):
        bench.worker.tick(look_around=False)
    execution.log("three")
    with away(bench):
        bench.worker.tick(look_around=False)
    execution.log("four\x00 with a NUL \ud800")
    bench.worker.tick(look_around=False)
    execution.log("five")
    execution.succeed()
    bench.worker.tick(look_around=False)
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
    bench.worker.tick(look_around=False)
    assert seen == [(RunState.SUCCEEDED, ["last"])]


def test_a_line_said_just_before_the_end_is_kept_wherever_in_a_tick_the_two_fall(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (execution,) = bench.begin()
    take = bench.worker.desk.take

    def take_and_hear_more() -> Papers:
        papers = take()
        monkeypatch.setattr(bench.worker.desk, "take", take)
        execution.log("last")
        execution.succeed()
        return papers

    monkeypatch.setattr(bench.worker.desk, "take", take_and_hear_more)
    bench.worker.tick()
    bench.worker.tick()
    assert bench.run(execution.task.run.id).state is RunState.SUCCEEDED
    assert bench.lines(execution.task.run.id) == ["last"]


def test_a_log_is_cut_at_its_cap_with_a_word_about_it_and_others_are_not(bench: Bench) -> None:
    chatty, quiet = bench.begin(2)
    for number in range(100):
        chatty.log(f"{number:03d} " + "é" * 50)
    quiet.log("I am here")
    bench.worker.tick(look_around=False)
    chatty.log("still talking")
    quiet.log("still here")
    bench.worker.tick(look_around=False)
    lines = bench.lines(chatty.task.run.id)
    assert lines[-1] == "the log was cut here, after 945 bytes"
    assert [line[:3] for line in lines[:-1]] == [f"{n:03d}" for n in range(9)]
    assert bench.lines(quiet.task.run.id) == ["I am here", "still here"]


def test_the_cap_that_is_in_force_counts(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.settings = EngineSettings(log_bytes_max_per_run=2048)
    for _ in range(30):
        execution.log("x" * 49)
    bench.worker.tick(look_around=False)
    assert len(bench.lines(execution.task.run.id)) == 30


def test_progress_is_written_with_the_next_tick_the_newest_wins(bench: Bench) -> None:
    (execution,) = bench.begin()
    execution.progress(1, 10)
    execution.progress(2, 10)
    bench.clock.advance(1)
    bench.worker.tick(look_around=False)
    run = bench.run(execution.task.run.id)
    assert (run.progress_processed, run.progress_total) == (2, 10)
    assert run.progress_at == NOON + timedelta(seconds=1)
    execution.progress(5, None)
    with away(bench):
        bench.worker.tick(look_around=False)
    execution.progress(6, None)
    bench.worker.tick(look_around=False)
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
        assert bench.worker.tick(look_around=False) == Worked()
    assert sent == []


# --- transactions of handlers ---------------------------------------------------------------------


def test_rows_and_progress_of_a_transaction_are_there_together(bench: Bench) -> None:
    (execution,) = bench.begin()
    with execution.surroundings.transaction(execution.task) as connection:
        note(connection)
        execution.progress(3, 4)
    assert (bench.notes(), bench.run(execution.task.run.id).progress_processed) == (1, 3)


def test_a_transaction_whose_block_raises_leaves_nothing(bench: Bench) -> None:
    (execution,) = bench.begin()

    def break_off() -> None:
        with execution.surroundings.transaction(execution.task) as connection:
            note(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert bench.notes() == 0
    assert bench.run(execution.task.run.id).state is RunState.RUNNING


@pytest.mark.parametrize("how", ["canceled", "judged lost"])
def test_a_run_that_was_taken_gets_no_transaction(bench: Bench, how: str) -> None:
    (execution,) = bench.begin()
    with execution.surroundings.transaction(execution.task) as connection:
        note(connection)
    take_away(bench, execution.task.run.id, how)
    entered = False
    with (
        pytest.raises(Fenced, match="nothing was written"),
        execution.surroundings.transaction(execution.task) as connection,
    ):
        entered = True
    assert not entered
    assert bench.notes() == 1


def test_whoever_takes_a_run_waits_until_its_transaction_is_in(bench: Bench) -> None:
    (execution,) = bench.begin()
    run_id = execution.task.run.id
    with bench.worker.desk.transaction(execution.task) as connection:
        canceling = in_background(lambda: Runs(database=bench.door, actor="me").cancel(run_id))
        note(connection)
        assert not canceling.done()
    assert canceling.result(30).state is RunState.CANCELED
    assert bench.notes() == 1
    with pytest.raises(Fenced), bench.worker.desk.transaction(execution.task):
        pass


def test_a_finished_run_gets_no_transaction(bench: Bench) -> None:
    (execution,) = bench.begin()
    execution.succeed()
    bench.worker.tick()
    with pytest.raises(Fenced), execution.surroundings.transaction(execution.task):
        pass


# --- going away, and coming back ------------------------------------------------------------------


def test_a_worker_that_stops_taking_hands_back_what_has_not_begun_and_finishes_the_rest(
    bench: Bench,
) -> None:
    (running,) = bench.begin()
    waiting = bench.give(2)
    bench.worker.stop_taking()
    for run_id in waiting:
        run = bench.run(run_id)
        assert (run.state, run.reason) == (RunState.ORPHANED, Reason.WORKER_SHUTDOWN)
    assert bench.worker.tick().started == []
    running.succeed()
    assert len(bench.worker.tick().ended) == 1
    with bench.truth.read() as connection:
        worker = workers.get(connection, WORKER)
    assert worker is not None
    assert worker.state is WorkerState.DRAINING


def test_handing_back_that_did_not_get_through_is_done_with_the_next_look(bench: Bench) -> None:
    """Otherwise what was given to it waits until all that it runs has ended."""
    bench.begin()
    (waiting,) = bench.give()
    with away(bench):
        bench.worker.stop_taking()
    assert bench.run(waiting).state is RunState.ASSIGNED
    assert bench.worker.tick().started == []
    assert bench.run(waiting).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        (worker,) = workers.find(connection)
    assert worker.state is WorkerState.DRAINING


def test_a_worker_that_leaves_hands_back_and_is_gone(bench: Bench) -> None:
    (waiting,) = bench.give()
    bench.worker.leave()
    assert bench.run(waiting).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        assert workers.find(connection) == []


def test_what_is_stopped_for_the_shutdown_is_repeated_at_once(bench: Bench) -> None:
    executions = bench.begin(2)
    bench.worker.stop_taking()
    bench.worker.stop_all(StopCause.SHUTDOWN)
    for execution in executions:
        assert execution.stops == [(StopCause.SHUTDOWN, False)]
        execution.obey()
    assert bench.worker.tick().retries == 2
    for execution in executions:
        retry = bench.retry_of(execution.task.run.id)
        assert retry is not None
        assert (retry.scheduled_for, retry.retries_used, retry.attempt) == (NOON, 0, 2)


def test_a_worker_that_was_cut_off_is_not_one_that_leaves(bench: Bench) -> None:
    """Marked as leaving it would be sent away by its own mark, and not come back."""
    (waiting,) = bench.give()
    bench.worker.cut_off()
    assert bench.worker.tick().started == []
    assert bench.run(waiting).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        (worker,) = workers.find(connection)
    assert worker.state is WorkerState.ATTACHED


def test_a_new_name_that_did_not_get_through_is_not_taken(bench: Bench) -> None:
    bench.worker.cut_off()
    with away(bench):
        bench.worker.become(replace(ME, id="new"))
    assert (bench.worker.identity.id, bench.worker.accepting) == (WORKER, False)
    assert bench.worker.become(replace(ME, id="newer"))
    assert (bench.worker.identity.id, bench.worker.accepting) == ("newer", True)


def test_a_worker_that_was_drained_before_it_was_cut_off_leaves_under_its_new_name_too(
    bench: Bench,
) -> None:
    with bench.truth.write() as connection:
        workers.drain(connection, [WORKER])
    bench.worker.cut_off()
    assert bench.worker.become(replace(ME, id="new"))
    assert not bench.worker.accepting
    bench.worker.tick()
    with bench.truth.read() as connection:
        worker = workers.get(connection, "new")
    assert worker is not None
    assert worker.state is WorkerState.DRAINING


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_former_name_that_somebody_holds_keeps_nobody_from_a_new_one(bench: Bench) -> None:
    bench.worker.cut_off()
    with bench.truth.engine.connect() as holder:
        holder.execute(select(table_of_workers.c.id).with_for_update())
        assert bench.worker.become(replace(ME, id="new"))
    with bench.truth.read() as connection:
        assert {worker.id for worker in workers.find(connection)} == {WORKER, "new"}


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_to_hand_back_nobody_waits_for_what_somebody_holds(bench: Bench) -> None:
    held, other = bench.give(2)
    with bench.truth.engine.connect() as holder:
        holder.execute(select(job_runs.c.id).where(job_runs.c.id == held).with_for_update())
        assert bench.worker.stop_taking() == {other}
    bench.worker.tick()
    assert bench.run(held).state is RunState.ORPHANED


def test_a_worker_becomes_another_only_when_nothing_of_it_runs(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.worker.cut_off()
    assert execution.stops == [(StopCause.NOT_CONFIRMED, True)]
    assert not bench.worker.become(replace(ME, id="new"))
    assert (bench.worker.identity.id, bench.worker.accepting) == (WORKER, False)
    (left_over,) = bench.give()
    execution.obey()
    bench.worker.tick()
    assert bench.worker.become(replace(ME, id="new"))
    assert (bench.worker.identity.id, bench.worker.accepting) == ("new", True)
    assert bench.worker.tick().started == []
    assert bench.run(left_over).state is RunState.ORPHANED
    with bench.truth.read() as connection:
        assert [worker.id for worker in workers.find(connection)] == ["new"]
    (later,) = bench.begin()
    assert bench.run(later.task.run.id).assigned_worker_id == "new"
    later.succeed()
    assert len(bench.worker.tick().ended) == 1


def test_an_end_that_waited_for_the_database_is_written_under_the_old_name(bench: Bench) -> None:
    (execution,) = bench.begin()
    bench.worker.stop_all(StopCause.NOT_CONFIRMED, at_once=True)
    execution.obey()
    with away(bench):
        bench.worker.tick()
    bench.worker.tick()
    run = bench.run(execution.task.run.id)
    assert (run.state, run.reason) == (RunState.FAILED, Reason.NOT_CONFIRMED)
    assert bench.worker.running == 0


def test_a_name_taken_without_an_answer_is_left_behind_and_another_one_serves(
    bench: Bench,
) -> None:
    with lost(bench):
        bench.worker.become(replace(ME, id="lost"))
    bench.worker.become(replace(ME, id="found"))
    (execution,) = bench.begin()
    assert bench.run(execution.task.run.id).assigned_worker_id == "found"


def test_retries_are_due_by_the_databases_clock_not_by_this_machines(bench: Bench) -> None:
    ahead = ManualClock(NOON + timedelta(hours=1))
    bench.worker = bench.a_worker(ahead, replace(ME, id="ahead"))
    bench.worker.register()
    (execution,) = bench.begin()
    execution.end(Stopped(cause=StopCause.SHUTDOWN))
    bench.worker.tick()
    retry = bench.retry_of(execution.task.run.id)
    assert retry is not None
    assert retry.scheduled_for == NOON
