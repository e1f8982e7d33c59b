"""The whole engine with its threads, on the machine's own clock: it runs, and several share the work."""

import threading
from collections import Counter
from typing import Any

from support.engines import FREE, Engines, Gate, expecting
from support.factories import add_job, spec
from support.waiting import wait_until
from tsuzuki.engine.outcome import Failed, Outcome, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.services.events import Events

# --- it runs --------------------------------------------------------------------------------------


def test_what_is_submitted_is_executed_once_within_the_limits(engines: Engines) -> None:
    add_job(engines.database, FREE)
    add_job(engines.database, spec("two", max_concurrent=2))
    open_gate, narrow = Gate(), Gate()
    open_gate.open.set()

    def handler(task: Task, stopping: threading.Event) -> Outcome:
        return (narrow if task.job_name == "two" else open_gate)(task, stopping)

    engines.start(handler, capacity=5)
    ids = [*engines.submit(60), *engines.submit(6, "two")]
    narrow.wait_for(2)
    narrow.open.set()
    for run_id in ids:
        run = engines.wait(run_id)
        assert (run.state, run.result, run.attempt) == (RunState.SUCCEEDED, run_id, 1)
    assert set((open_gate.inside + narrow.inside).values()) == {1}
    assert open_gate.most <= 5
    assert narrow.most <= 2


def test_ticks_and_events_become_runs_that_end(engines: Engines) -> None:
    add_job(engines.database, FREE)
    add_job(engines.database, spec("ticking", schedule=parse_schedule("every 1s")))
    add_job(engines.database, spec("listening", on_event="pushed"))
    heard: list[Any] = []

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        if task.job_name == "listening":
            heard.append(task.event)
        return Succeeded()

    engines.start(handler)
    Events(database=engines.database).emit("pushed", {"branch": 1}, dedupe_key="once")

    def ended(job: str) -> list[Run]:
        wanted = RunFilter(job_name=job, states=frozenset({RunState.SUCCEEDED}))
        return engines.runs.find(wanted)

    wait_until(lambda: len(ended("ticking")) >= 2, "two ticks have run")
    wait_until(lambda: len(ended("listening")) == 1, "the event has run")
    assert heard == [{"branch": 1}]


def test_a_failure_is_retried_until_it_succeeds(engines: Engines) -> None:
    add_job(
        engines.database,
        spec("stubborn", retry=RetryPolicy(max_retries=5, initial_seconds=0.01, jitter=0)),
    )
    keys: list[str] = []

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        keys.append(task.idempotency_key)
        if task.run.attempt < 3:
            return Failed(reason=Reason.HANDLER_FAILED, error="not yet")
        return Succeeded(result="at last")

    engine = engines.start(handler)
    (first,) = engines.submit(job="stubborn")
    engines.wait(first)
    run_id: int | None = first
    while (retried := engines.runs.get(run_id or 0).retried_as) is not None:
        run_id = retried
        engines.wait(run_id)
    assert engines.wait(run_id or 0).result == "at last"
    assert len(keys) == 3
    assert set(keys) == {engines.runs.get(first).run.work_key}
    wait_until(lambda: engine.ended.total() == 3, "the engine has counted")
    assert engine.ended == {RunState.FAILED: 2, RunState.SUCCEEDED: 1}


def test_a_canceled_run_is_stopped_while_it_runs(engines: Engines) -> None:
    add_job(engines.database, FREE)
    gate = Gate()
    engine = engines.start(gate)
    (run_id,) = engines.submit()
    gate.wait_for(1)
    with expecting(gate.stopped, "the handler was stopped"):
        engines.runs.cancel(run_id)
    wait_until(lambda: engine.worker.running == 0, "the slot is free")
    assert engines.wait(run_id).state is RunState.CANCELED
    gate.open.set()
    (next_id,) = engines.submit()
    assert engines.wait(next_id).state is RunState.SUCCEEDED


def test_a_run_that_takes_too_long_is_stopped(engines: Engines) -> None:
    add_job(engines.database, spec("slow", timeout_seconds=0.1))
    engines.start(Gate())
    (run_id,) = engines.submit(job="slow")
    run = engines.wait(run_id)
    assert (run.state, run.reason) == (RunState.TIMED_OUT, Reason.TIMEOUT)


# --- several processes ----------------------------------------------------------------------------


def test_one_leads_the_others_work_and_when_it_goes_another_leads(engines: Engines) -> None:
    add_job(engines.database, FREE)
    done: Counter[int] = Counter()

    def handler(task: Task, _stopping: threading.Event) -> Outcome:
        done[task.run.id] += 1
        return Succeeded()

    first = engines.start(handler, seed=1)
    wait_until(lambda: first.lease.term is not None, "the first leads")
    others = [engines.start(handler, seed=n) for n in (2, 3)]
    for run_id in engines.submit(30):
        engines.wait(run_id)
    assert [engine.lease.term for engine in others] == [None, None]
    first.shut_down()
    wait_until(lambda: any(e.lease.term for e in others), "another leads")
    for run_id in engines.submit(30):
        engines.wait(run_id)
    assert set(done.values()) == {1}
    assert engines.workers.leader().epoch >= 2
    assert engines.worker_state(first.worker.identity.id) is WorkerState.GONE


def test_leading_and_working_can_be_two_processes(engines: Engines) -> None:
    add_job(engines.database, FREE)
    lead = engines.start(work=False)
    work = engines.start(lead=False, capacity=2)
    (run_id,) = engines.submit()
    run = engines.wait(run_id)
    assert run.assigned_worker_id == work.worker.identity.id
    assert work.lease.term is None
    assert engines.worker_state(lead.worker.identity.id) is None


def test_a_leader_that_an_operator_deposed_is_followed_under_a_new_epoch(engines: Engines) -> None:
    add_job(engines.database, FREE)
    engine = engines.start()
    wait_until(lambda: engine.lease.term is not None, "it leads")
    engines.workers.step_down()
    wait_until(lambda: engines.workers.leader().epoch >= 2, "it leads again")
    (run_id,) = engines.submit()
    assert engines.wait(run_id).state is RunState.SUCCEEDED
