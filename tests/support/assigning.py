"""For tests of the assigner: jobs without a limit, due runs, and which of them are assigned."""

from typing import Any

from support.factories import (
    add_job,
    new_run,
    ref,
    spec,
)
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.store.rows import run_from
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.runs.runs import SELECT_RUNS
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

ALLOW = ConcurrencyPolicy.ALLOW


def an_assigner(database: Database) -> Assigner:
    return Assigner(database=database)


def add_free_job(database: Database, name: str = "free", **changes: Any) -> int:
    """A job without a limit."""
    return add_job(database, spec(name, **{"concurrency_policy": ALLOW, **changes}))


def create_runs(database: Database, job_id: int, count: int, **changes: Any) -> list[int]:
    with database.write() as connection:
        created = runs.create(connection, [new_run(database, job_id, **changes)] * count)
    return [run_id for run_id in created if run_id is not None]


def assigned_runs(database: Database) -> list[Run]:
    """The assigned runs, in the order of ids."""
    with database.read() as connection:
        rows = connection.execute(
            SELECT_RUNS.where(job_runs.c.state == RunState.ASSIGNED.value).order_by(job_runs.c.id)
        ).mappings()
        return [run_from(row) for row in rows]


def assigned_ids(database: Database) -> list[int]:
    return [run.id for run in assigned_runs(database)]


def finish(database: Database, run_id: int, worker_id: str) -> None:
    with database.write() as connection:
        (order,) = moves.start(
            connection, worker_id=worker_id, runs=[ref(database, run_id)]
        ).values()
        end = RunEnd(run=order.started, state=RunState.SUCCEEDED)
        assert moves.finish(connection, worker_id=worker_id, ends=[end])
