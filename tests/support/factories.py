"""Factories of jobs, runs, workers and terms. Deterministic."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, update

from tsuzuki.model.abilities import Abilities
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.model.run import NewRun, RunRef
from tsuzuki.model.states import RunState, Trigger
from tsuzuki.store import events, jobs, leadership, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, ownership, runs
from tsuzuki.store.schema.tables import job_definitions
from tsuzuki.store.sql.database import Database

WORKER = "host-1-aaaa"


def spec(name: str = "hello", **changes: Any) -> JobSpec:
    return JobSpec(**{"name": name, "handler": "command", "options": {"argv": ["true"]}, **changes})


def add_job(database: Database, job: JobSpec | None = None) -> int:
    with database.write() as connection:
        return jobs.add(connection, job or spec(), source=JobSource.DATABASE)


def make_schedule_unreadable(database: Database, job_id: int) -> None:
    """Store a schedule with a time zone that only another machine knows."""
    document = {"daily_at": "07:00", "timezone": "Mars/Olympus"}
    changed = update(job_definitions).where(job_definitions.c.id == job_id)
    with database.write() as connection:
        connection.execute(changed.values(schedule=document, version=job_definitions.c.version + 1))


def lose_last_change(database: Database, job_id: int, **columns: Any) -> None:
    """Simulate a failover that lost the last change, whose version another change then got."""
    changed = update(job_definitions).where(job_definitions.c.id == job_id)
    updated_at = database.clock.now() - timedelta(milliseconds=1)
    with database.write() as connection:
        connection.execute(changed.values(updated_at=updated_at, **columns))


def take_lead(database: Database, holder: str = "leader-1", lease_seconds: float = 60.0) -> Term:
    with database.write() as connection:
        term = leadership.take(connection, holder=holder, lease_seconds=lease_seconds)
    assert term is not None
    return term


def depose_and_take(database: Database, holder: str = "leader-2") -> Term:
    with database.write() as connection:
        leadership.depose(connection)
    return take_lead(database, holder)


def add_worker(
    database: Database,
    worker_id: str = WORKER,
    *,
    capacity: int = 10,
    tags: frozenset[str] = frozenset(),
    only_job: str | None = None,
    only_run: int | None = None,
    abilities: Abilities | None = None,
) -> str:
    with database.write() as connection:
        workers.register(
            connection,
            worker_id=worker_id,
            host="host",
            pid=1,
            capacity=capacity,
            tags=tags,
            only_job=only_job,
            only_run=only_run,
            abilities=abilities,
            software_version="test",
        )
    return worker_id


def new_run(database: Database, job_id: int, **changes: Any) -> NewRun:
    return NewRun(
        **{
            "job_definition_id": job_id,
            "trigger": Trigger.MANUAL,
            "scheduled_for": database.clock.now(),
            **changes,
        }
    )


def create_run(database: Database, job_id: int, **changes: Any) -> RunRef:
    with database.write() as connection:
        (run_id,) = runs.create(connection, [new_run(database, job_id, **changes)])
    assert run_id is not None
    return RunRef(id=run_id, version=1)


def emit_event(database: Database, dedupe_key: str | None = None) -> int:
    with database.write() as connection:
        event, _ = events.emit(
            connection, event_type="paid", payload={"n": 1}, dedupe_key=dedupe_key
        )
    return event.id


def ref(database: Database, run_id: int) -> RunRef:
    run = read_run(database, run_id)
    return RunRef(id=run.id, version=run.version)


def read_run(database: Database, run_id: int) -> Any:
    with database.read() as connection:
        run = runs.get(connection, run_id)
    assert run is not None
    return run


def run_in_state(
    database: Database, state: RunState, term: Term, worker_id: str = WORKER
) -> RunRef:
    """A run brought to `state` by legal moves."""
    with database.read() as connection:
        job = jobs.get_by_name(connection, "hello")
    job_id = job.id if job else add_job(database)
    created = create_run(database, job_id)
    with database.write() as connection:
        _bring(connection, created, state, term, worker_id)
    return ref(database, created.id)


def end_by_shutdown(database: Database, run_id: int, worker_id: str = WORKER) -> None:
    """End a RUNNING run as a worker does that shuts down."""
    with database.write() as connection:
        (order,) = ownership.running_on_worker(connection, worker_id=worker_id)
        assert order.id == run_id
        end = moves.RunEnd(
            run=order.started, state=RunState.FAILED, reason=moves.Reason.WORKER_SHUTDOWN
        )
        assert moves.finish(connection, worker_id=worker_id, ends=[end])


def bring_to(database: Database, run_id: int, state: RunState, term: Term) -> None:
    """Move a PENDING run to `state` by legal moves."""
    with database.write() as connection:
        _bring(connection, RunRef(id=run_id, version=1), state, term, WORKER)


def _bring(
    connection: Connection, run: RunRef, state: RunState, term: Term, worker_id: str
) -> None:
    if state is RunState.PENDING:
        return
    if state is RunState.CANCELED:
        assert moves.cancel(connection, operator="operator-1", runs=[run])
        return
    assignment = moves.Assignment(run=run, worker_id=worker_id)
    assert moves.assign(connection, term=term, assignments=[assignment])
    assigned = RunRef(id=run.id, version=2)
    if state is RunState.ASSIGNED:
        return
    if state is RunState.ORPHANED:
        assert moves.hand_back(connection, worker_id=worker_id, runs=[assigned])
        return
    started = moves.start(connection, worker_id=worker_id, runs=[assigned])[run.id].started
    if state is RunState.RUNNING:
        return
    reason = None if state is RunState.SUCCEEDED else moves.Reason.HANDLER_FAILED
    end = moves.RunEnd(run=started, state=state, reason=reason)
    assert moves.finish(connection, worker_id=worker_id, ends=[end])
