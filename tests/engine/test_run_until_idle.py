"""Run until nothing is due, then leave."""

import threading

import pytest

from support.engines import FREE, Engines
from support.factories import add_job
from support.waiting import wait_until
from tsuzuki.engine.run_until_idle import run_until_idle
from tsuzuki.model.errors import Conflict
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import WorkerState


def test_run_until_idle_runs_everything_that_is_due_and_leaves(engines: Engines) -> None:
    add_job(engines.database, FREE)
    ids = engines.submit(12)
    engine = engines.create(capacity=4)
    ended = run_until_idle(engine, stop=threading.Event())
    assert ended == {RunState.SUCCEEDED: 12}
    assert {engines.runs.get(run_id).run.state for run_id in ids} == {RunState.SUCCEEDED}
    assert not engines.workers.leader().is_valid
    assert engines.worker_state(engine.worker.identity.id) is WorkerState.GONE


def test_run_until_idle_refuses_while_another_process_leads(engines: Engines) -> None:
    engine = engines.start()
    wait_until(lambda: engine.lease.term is not None, "it leads")
    with pytest.raises(Conflict, match="another process is the leader"):
        run_until_idle(engines.create(), stop=threading.Event())
