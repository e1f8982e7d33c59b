"""One run that is executed here, while what is due stays due."""

import threading

import pytest

from support.engines import FREE, Engines
from support.factories import add_job
from support.waiting import wait_until
from tsuzuki.engine.run_one import run_one
from tsuzuki.model.errors import Conflict
from tsuzuki.model.job import Job
from tsuzuki.model.run import NewRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import jobs


@pytest.fixture
def job(engines: Engines) -> Job:
    add_job(engines.database, FREE)
    with engines.database.read() as connection:
        (job,) = jobs.find(connection)
    return job


def wanted(job: Job) -> NewRun:
    return NewRun(job_definition_id=job.id, trigger=Trigger.MANUAL, scheduled_for=None)


def test_one_run_is_executed_and_what_is_due_stays_due(engines: Engines, job: Job) -> None:
    due = engines.submit(3)
    engine = engines.create(capacity=1, lead=False)
    run_id = run_one(engine, job, wanted(job), stop=threading.Event())
    assert engines.runs.get(run_id).run.state is RunState.SUCCEEDED
    assert {engines.runs.get(one).run.state for one in due} == {RunState.PENDING}
    assert not engines.workers.leader().is_valid
    assert engines.worker_state(engine.worker.identity.id) is WorkerState.GONE


def test_while_another_process_leads_no_run_is_created(engines: Engines, job: Job) -> None:
    leader = engines.start()
    wait_until(lambda: leader.lease.term is not None, "it leads")
    with pytest.raises(Conflict, match="another process is the leader"):
        run_one(engines.create(lead=False), job, wanted(job), stop=threading.Event())
    assert engines.runs.find(RunFilter()) == []


def test_a_leader_that_appears_at_the_last_moment_keeps_the_run_from_being_created(
    engines: Engines, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines.create(lead=False)
    monkeypatch.setattr(engine.lease, "tick", lambda: False)
    with pytest.raises(Conflict, match="another process is the leader"):
        run_one(engine, job, wanted(job), stop=threading.Event())
    assert engines.runs.find(RunFilter()) == []
    assert engines.worker_state(engine.worker.identity.id) is WorkerState.GONE
