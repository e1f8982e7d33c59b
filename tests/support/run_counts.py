"""Counts of runs, for tests that look at all of them."""

from sqlalchemy import Connection, func, select

from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs


def count_by_state(connection: Connection) -> dict[RunState, int]:
    rows = connection.execute(select(job_runs.c.state, func.count()).group_by(job_runs.c.state))
    counts = {RunState(state): count for state, count in rows}
    return {state: counts.get(state, 0) for state in RunState}


def count_live(connection: Connection) -> dict[int, int]:
    """Unfinished runs of each job that has any."""
    rows = connection.execute(
        select(job_runs.c.job_definition_id, func.count().label("runs"))
        .where(job_runs.c.finished_at.is_(None))
        .group_by(job_runs.c.job_definition_id)
    )
    return {row.job_definition_id: row.runs for row in rows}
