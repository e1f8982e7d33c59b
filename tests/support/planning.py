"""For tests of the planner: scheduled jobs, and the ticks that runs and skips stand for."""

from datetime import datetime, timedelta
from typing import Any

from support.factories import (
    add_job,
    spec,
)
from support.moving_clock import NOON
from tsuzuki.engine.leader.planner import Planner
from tsuzuki.model.job import Job, JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.schedule import Schedule, parse_schedule
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.services import job_changes
from tsuzuki.services.job_changes import ChangeKind, JobSyncChange
from tsuzuki.store import jobs
from tsuzuki.store.rows import run_from
from tsuzuki.store.runs import moves
from tsuzuki.store.runs.runs import SELECT_RUNS
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

HOURLY = parse_schedule("every 1h")
MINUTELY = parse_schedule("every 1m")
ALLOW = ConcurrencyPolicy.ALLOW
HOUR = 3600.0


def a_planner(database: Database, settings: EngineSettings | None = None) -> Planner:
    return Planner(database=database, settings=lambda: settings or EngineSettings())


def scheduled(database: Database, schedule: Schedule = HOURLY, **changes: Any) -> int:
    return add_job(database, spec(schedule=schedule, **changes))


def job_of(database: Database, job_id: int) -> Job:
    with database.read() as connection:
        job = jobs.get(connection, job_id)
    assert job is not None
    return job


def change_job(database: Database, job_id: int, new: JobSpec) -> None:
    job = job_of(database, job_id)
    with database.write() as connection:
        change = JobSyncChange(kind=ChangeKind.CHANGE, name=new.name, before=job, after=new)
        job_changes.carry_out(connection, [change], source=job.source, actor="operator")


def all_runs(database: Database) -> list[Run]:
    with database.read() as connection:
        rows = connection.execute(SELECT_RUNS.order_by(job_runs.c.id)).mappings()
        return [run_from(row) for row in rows]


def created(database: Database) -> list[tuple[datetime, RunState, Reason | None]]:
    return [(run.scheduled_for, run.state, run.reason) for run in all_runs(database)]


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


def end_all(database: Database) -> None:
    """Whatever is unfinished is ended, so that no tick finds anything in its way."""
    with database.write() as connection:
        rows = connection.execute(SELECT_RUNS.where(job_runs.c.finished_at.is_(None))).mappings()
        live = [run_from(row) for row in rows]
        refs = [moves.RunRef(id=run.id, version=run.version) for run in live]
        assert len(moves.cancel(connection, operator="test", runs=refs)) == len(refs)


def ticks_of(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    ticks = []
    while (after := schedule.next_after(after)) <= until:
        ticks.append(after)
    return ticks


def accounted(made: list[Run], schedule: Schedule | None = None) -> list[datetime]:
    """Every tick that a run or a skip stands for, in order."""
    ticks: list[datetime] = []
    for run in made:
        if run.trigger is not Trigger.TIME:
            continue
        ticks.append(run.scheduled_for)
        if run.covers_ticks > 1:
            assert schedule is not None
            assert run.covers_until is not None
            covered = ticks_of(schedule, run.scheduled_for, run.covers_until)
            assert len(covered) == run.covers_ticks - 1
            ticks += covered
    return sorted(ticks)
