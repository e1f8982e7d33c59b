"""Run the engine in the foreground for one run that no other process may see waiting: without planning, and without
leading any longer than it takes to assign that run."""

import threading

from tsuzuki.engine.process import Engine
from tsuzuki.engine.run_until_idle import another_leads
from tsuzuki.model.job import Job
from tsuzuki.model.run import NewRun, RunRef
from tsuzuki.store import leadership
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment

POLL_SECONDS = 0.05


def run_one(engine: Engine, job: Job, wanted: NewRun, *, stop: threading.Event) -> int:
    """Create a run of a job and execute it in this process, which must have a worker and not lead. Returns the id of
    the run, which has ended unless `stop` was set.

    What is due stays due: nothing is planned, and no other run is assigned here. Raises `Conflict` if another process
    leads.
    """
    engine.settings.refresh()
    if engine.lease.seconds_until_free():
        raise another_leads()
    engine.start()
    try:
        run_id = _create_assigned(engine, job, wanted)
        engine.wakeups.wake([engine.worker.worker_id])
        _wait_for_end(engine, run_id, stop)
    finally:
        engine.shut_down()
    if engine.fatal is not None:
        raise engine.fatal
    return run_id


def _create_assigned(engine: Engine, job: Job, wanted: NewRun) -> int:
    """In one transaction, so that the run never waits for another leader."""
    if not engine.lease.tick() or (term := engine.lease.term) is None:
        raise another_leads()
    try:
        with engine.database.write() as connection:
            (run_id,) = runs.create(connection, [wanted], term=term, of=job)
            if run_id is None:
                raise another_leads()
            assignment = Assignment(RunRef(run_id, 1), engine.worker.worker_id)
            bulk_cancels = leadership.bulk_cancels(connection)
            if not moves.assign(
                connection, term=term, assignments=[assignment], bulk_cancels=bulk_cancels
            ):
                raise another_leads()
        return run_id
    finally:
        engine.lease.step_down()


def _wait_for_end(engine: Engine, run_id: int, stop: threading.Event) -> None:
    while not (stop.wait(POLL_SECONDS) or engine.fatal):
        with engine.database.read() as connection:
            run = runs.get(connection, run_id)
        if run is None or run.state.is_final:
            return
