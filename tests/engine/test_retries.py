"""Retries: when, how often, whether they count, and what the new run is."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import text, update

from support.factories import (
    WORKER,
    add_job,
    create_run,
    make_schedule_unreadable,
    read_run,
    ref,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecution, ScriptedExecutor
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.outcome import Failed, StopCause, Stopped
from tsuzuki.engine.worker.finishing import RETRY_AFTER_MAX_SECONDS
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.worker import Worker
from tsuzuki.model.job import JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.services.runs import Runs
from tsuzuki.store import jobs, workers
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

STEADY = RetryPolicy(max_retries=3, initial_seconds=10, factor=2, cap_seconds=30, jitter=0)
SETTINGS = EngineSettings(max_orphans=3)


class Chain:
    """One piece of work and all its attempts, on one worker with a leader."""

    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.database = database
        self.clock = clock
        self.term = take_lead(database, lease_seconds=1_000_000_000)
        self.executor = ScriptedExecutor()
        self.assigner = Assigner(database=database)
        self.rescuer = Rescuer(database=database, settings=lambda: SETTINGS, random=Random(1))
        self.worker = Worker(
            identity=WorkerIdentity(
                id=WORKER,
                host="h",
                pid=1,
                capacity=1,
                tags=frozenset(),
                software_version="test",
            ),
            database=database,
            executor=self.executor,
            clock=clock,
            random=Random(1),
            settings=lambda: SETTINGS,
            wake=lambda: None,
        )
        self.worker.register()

    def submit(
        self,
        policy: RetryPolicy = STEADY,
        *,
        job: str = "hello",
        handler: str = "command",
        **changes: Any,
    ) -> int:
        self.job_id = add_job(self.database, spec(job, handler=handler, retry=policy))
        return create_run(self.database, self.job_id, **changes).id

    def start(self) -> ScriptedExecution:
        """Advance the clock to the next attempt, and start it."""
        last = self.all_runs()[-1]
        ahead = (last.scheduled_for - self.clock.now()).total_seconds()
        if ahead > 0:
            self.clock.advance(ahead - 0.001)
            self.heartbeat()
            assert self.assigner.tick(self.term) == 0, "assigned before its time"
            self.clock.advance(0.001)
        assert self.assigner.tick(self.term) == 1
        self.worker.tick()
        return self.executor.last

    def heartbeat(self) -> None:
        with self.database.write() as connection:
            workers.heartbeat(connection, self.worker.worker_id)

    def end(self, execution: ScriptedExecution, outcome: Any) -> Run | None:
        """End it. Answers its retry, if there is one."""
        execution.end(outcome)
        self.worker.tick()
        return self.retry_of(execution.task.run.id)

    def retry_of(self, run_id: int) -> Run | None:
        with self.database.read() as connection:
            return runs.get_by_key(connection, f"retry:{run_id}")

    def all_runs(self) -> list[Run]:
        return check_history(self.database)


@pytest.fixture
def chain(database: Database, clock: MovingClock) -> Iterator[Chain]:
    chain = Chain(database, clock)
    yield chain
    chain.all_runs()


FAILED = Failed(reason=Reason.HANDLER_FAILED, error="it broke")
TIMED_OUT = Stopped(cause=StopCause.TIMEOUT)
SHUT_DOWN = Stopped(cause=StopCause.SHUTDOWN)
NOT_CONFIRMED = Stopped(cause=StopCause.NOT_CONFIRMED)


def test_failures_are_retried_with_growing_backoff_until_the_retries_are_used(
    chain: Chain,
) -> None:
    chain.submit()
    waits = []
    for outcome in (FAILED, TIMED_OUT, FAILED):
        retry = chain.end(chain.start(), outcome)
        assert retry is not None
        waits.append((retry.scheduled_for - chain.clock.now()).total_seconds())
    assert chain.end(chain.start(), FAILED) is None
    assert waits == [10, 20, 30]
    made = chain.all_runs()
    assert [run.attempt for run in made] == [1, 2, 3, 4]
    assert [run.retries_used for run in made] == [0, 1, 2, 3]
    assert [run.state for run in made] == [
        RunState.FAILED,
        RunState.TIMED_OUT,
        RunState.FAILED,
        RunState.FAILED,
    ]


def test_every_retry_names_the_run_it_retries_and_the_first_of_all(chain: Chain) -> None:
    first = chain.submit(arguments={"n": 1}, priority=3, concurrency_key="k")
    executions = [chain.start()]
    for _ in range(2):
        chain.end(executions[-1], FAILED)
        executions.append(chain.start())
    made = chain.all_runs()
    assert [run.retry_of for run in made] == [None, made[0].id, made[1].id]
    assert [run.origin_id for run in made] == [None, first, first]
    assert [run.trigger for run in made[1:]] == [Trigger.RETRY, Trigger.RETRY]
    assert {(run.arguments["n"], run.priority, run.concurrency_key) for run in made} == {
        (1, 3, "k")
    }
    assert {e.task.idempotency_key for e in executions} == {made[0].work_key}


def test_every_attempt_has_the_key_that_the_caller_gave(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=1, initial_seconds=10, jitter=0), work_key="order-7")
    for _ in range(2):
        execution = chain.start()
        assert execution.task.idempotency_key == "order-7"
        chain.end(execution, FAILED)
    Runs(database=chain.database, actor="ada").retry(execution.task.run.id)
    assert chain.start().task.idempotency_key == "order-7"


def test_runs_of_versions_without_stored_keys_keep_theirs_with_every_attempt(chain: Chain) -> None:
    first = chain.submit()
    with chain.database.write() as connection:
        allowed = "" if chain.database.is_sqlite else " ON tsuzuki_job_runs"
        connection.execute(text(f"DROP TRIGGER tsuzuki_job_runs_fixed{allowed}"))
        connection.execute(update(job_runs).values(work_key=None))
    executions = [chain.start()]
    chain.end(executions[-1], FAILED)
    executions.append(chain.start())
    assert {e.task.idempotency_key for e in executions} == {f"run-{first}"}


def test_two_pieces_of_work_have_two_keys(chain: Chain) -> None:
    chain.submit()
    create_run(chain.database, chain.job_id)
    first = chain.start()
    first.succeed()
    chain.worker.tick()
    second = chain.start()
    assert first.task.idempotency_key != second.task.idempotency_key


def test_without_retries_a_failure_is_final(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=0))
    assert chain.end(chain.start(), FAILED) is None


@pytest.mark.parametrize("reason", [Reason.HANDLER_UNKNOWN, Reason.ARGUMENTS_INVALID])
def test_a_failure_that_a_retry_cannot_mend_is_not_retried(chain: Chain, reason: Reason) -> None:
    chain.submit()
    assert chain.end(chain.start(), Failed(reason=reason, error="never")) is None


def test_a_handler_that_a_worker_lacks_is_looked_for_elsewhere_and_then_given_up(
    chain: Chain,
) -> None:
    chain.submit(RetryPolicy(max_retries=0), handler="python")
    unknown = Failed(reason=Reason.HANDLER_UNKNOWN, error="it is not here")
    for number in range(SETTINGS.max_orphans):
        retry = chain.end(chain.start(), unknown)
        assert retry is not None
        assert (retry.attempt, retry.retries_used, retry.losses) == (number + 2, 0, number + 1)
        assert retry.scheduled_for > chain.clock.now()
    assert chain.end(chain.start(), unknown) is None
    last = chain.all_runs()[-1]
    assert (last.state, last.reason) == (RunState.FAILED, Reason.HANDLER_UNKNOWN)
    assert last.error == "it is not here"


def test_a_canceled_run_is_not_retried(chain: Chain) -> None:
    run_id = chain.submit()
    execution = chain.start()
    Runs(database=chain.database, actor="me").cancel(run_id)
    assert chain.end(execution, FAILED) is None
    assert read_run(chain.database, run_id).state is RunState.CANCELED


def test_a_shutdown_is_retried_at_once_for_free_however_often(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=0))
    for number in range(8):
        retry = chain.end(chain.start(), SHUT_DOWN)
        assert retry is not None
        assert retry.scheduled_for == chain.clock.now()
        assert (retry.attempt, retry.retries_used) == (number + 2, 0)


def test_an_unconfirmed_run_is_retried_for_free_after_a_growing_wait(chain: Chain) -> None:
    """Its worker lives and stopped it: the database was out of reach, or there was no leader."""
    chain.submit(RetryPolicy(max_retries=0))
    waits = []
    for number in range(8):
        retry = chain.end(chain.start(), NOT_CONFIRMED)
        assert retry is not None
        assert (retry.retries_used, retry.losses, retry.losses_free) == (0, 0, number + 1)
        waits.append((retry.scheduled_for - chain.clock.now()).total_seconds())
    assert waits[0] == 0
    assert all(0.5 * 2**n <= wait <= 1.5 * 2**n for n, wait in enumerate(waits[1:]))


@pytest.mark.parametrize(
    ("job", "longest", "shortest"),
    [
        (spec("held", schedule=parse_schedule("every 1m")), 90, 0),
        (spec("held", schedule=parse_schedule("every 10s")), 15, 5),
        (
            spec(
                "free",
                schedule=parse_schedule("every 1m"),
                concurrency_policy=ConcurrencyPolicy.ALLOW,
            ),
            900,
            300,
        ),
        (spec("asked"), 900, 300),
    ],
    ids=["every 1m", "every 10s", "allow", "no schedule"],
)
def test_a_free_retry_does_not_hold_the_ticks_of_its_job_for_long(
    chain: Chain, job: JobSpec, longest: float, shortest: float
) -> None:
    create_run(chain.database, add_job(chain.database, job))
    for _ in range(12):
        retry = chain.end(chain.start(), NOT_CONFIRMED)
        assert retry is not None
    wait = (retry.scheduled_for - chain.clock.now()).total_seconds()
    assert shortest <= wait <= longest


def test_a_schedule_that_cannot_be_read_here_keeps_no_run_from_its_retry(chain: Chain) -> None:
    job_id = add_job(chain.database, spec("far", schedule=parse_schedule("every 1h")))
    create_run(chain.database, job_id)
    make_schedule_unreadable(chain.database, job_id)
    assert chain.end(chain.start(), NOT_CONFIRMED) is not None


def test_a_free_retry_keeps_the_others_for_real_failures(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=1, initial_seconds=10, jitter=0))
    assert chain.end(chain.start(), SHUT_DOWN) is not None
    retry = chain.end(chain.start(), FAILED)
    assert retry is not None
    assert (retry.attempt, retry.retries_used) == (3, 1)
    assert (retry.scheduled_for - chain.clock.now()).total_seconds() == 10
    assert chain.end(chain.start(), SHUT_DOWN) is not None
    assert chain.end(chain.start(), FAILED) is None


ASKED: list[tuple[Any, float]] = [
    (None, 10),
    (5.0, 10),
    (600.0, 600),
    (0, 10),
    (-3.0, 10),
    (float("nan"), 10),
    (float("inf"), RETRY_AFTER_MAX_SECONDS),
    (1e18, RETRY_AFTER_MAX_SECONDS),
    ("soon", 10),
]


def test_retry_after_is_honoured_if_it_makes_sense(chain: Chain) -> None:
    """Beyond the cap too; and whatever it was, the run ends."""
    for number, (asked, waits) in enumerate(ASKED):
        chain.submit(job=f"job-{number}")
        retry = chain.end(chain.start(), replace(FAILED, retry_after_seconds=asked))
        assert retry is not None
        assert retry.scheduled_for - chain.clock.now() == timedelta(seconds=waits), asked


def test_retry_after_does_not_add_retries(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=0))
    assert chain.end(chain.start(), replace(FAILED, retry_after_seconds=5)) is None


def test_the_wait_is_moved_by_its_jitter_and_not_further(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=100, initial_seconds=100, factor=1, jitter=0.2))
    waits = []
    for _ in range(6):
        retry = chain.end(chain.start(), FAILED)
        assert retry is not None
        waits.append((retry.scheduled_for - chain.clock.now()).total_seconds())
    assert all(80 <= wait <= 120 for wait in waits)
    assert len(set(waits)) == 6


def test_the_policy_as_it_was_when_the_run_started_decides(chain: Chain) -> None:
    chain.submit(RetryPolicy(max_retries=0))
    execution = chain.start()
    with chain.database.write() as connection:
        job = jobs.get(connection, chain.job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=replace(job.spec, retry=STEADY))
    assert chain.end(execution, FAILED) is None


def test_a_retry_by_hand_and_a_retry_by_rule_never_both_happen(chain: Chain) -> None:
    run_id = chain.submit(RetryPolicy(max_retries=0))
    execution = chain.start()
    chain.end(execution, FAILED)
    by_hand = Runs(database=chain.database, actor="me").retry(run_id)
    retry = chain.retry_of(run_id)
    assert retry is not None
    assert retry.id == by_hand.run_id
    chain.worker.on_outcome(execution.task, FAILED)
    chain.worker.tick()
    assert [run.retry_of for run in chain.all_runs()] == [None, run_id]


def test_hand_backs_before_the_start_count_neither_as_losses_nor_as_retries(chain: Chain) -> None:
    run_id = chain.submit(RetryPolicy(max_retries=0))
    for _ in range(SETTINGS.max_orphans + 1):
        assert chain.assigner.tick(chain.term) == 1
        with chain.database.write() as connection:
            moves.hand_back(connection, worker_id=WORKER, runs=[ref(chain.database, run_id)])
        assert chain.rescuer.tick(chain.term).failed == 0
    order = chain.start().task.run
    assert (order.attempt, order.retries_used, order.losses, order.losses_free) == (5, 0, 0, 0)
    stored = read_run(chain.database, run_id)
    assert (stored.orphan_count, stored.orphans_free) == (4, 4)
