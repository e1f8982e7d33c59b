"""Raw statements, as from a database shell: they bypass every function of the store."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Executable, Table, bindparam, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from tsuzuki.model.states import Actor, Reason, RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

MOMENT = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
WORKER_ID = "host-1-aaaa"

COLUMNS_OF_STATE: dict[RunState, dict[str, Any]] = {
    RunState.PENDING: {"assigned_worker_id": None, "started_at": None, "finished_at": None},
    RunState.ASSIGNED: {
        "assigned_worker_id": WORKER_ID,
        "assigned_at": MOMENT,
        "started_at": None,
        "finished_at": None,
    },
    RunState.RUNNING: {
        "assigned_worker_id": WORKER_ID,
        "started_at": MOMENT,
        "leader_epoch": 1,
        "finished_at": None,
    },
    RunState.ORPHANED: {"orphan_count": 1, "started_at": None, "finished_at": None},
    RunState.SUCCEEDED: {"started_at": MOMENT, "finished_at": MOMENT},
    RunState.FAILED: {"reason": Reason.HANDLER_FAILED, "finished_at": MOMENT},
    RunState.TIMED_OUT: {
        "reason": Reason.TIMEOUT,
        "started_at": MOMENT,
        "finished_at": MOMENT,
    },
    RunState.CANCELED: {"reason": Reason.OPERATOR, "finished_at": MOMENT},
}
"""The columns that the CHECK constraints demand in each state."""

RUN_COLUMNS = (
    "job_definition_id, state, version, trigger, scheduled_for, priority, arguments, attempt,"
    " retries_used, created_at, idempotency_key"
)
COPIED_RUN = (
    "job_definition_id, 'PENDING', 1, trigger, scheduled_for, priority, arguments, attempt,"
    " retries_used, created_at, idempotency_key"
)
"""A copy of a run: `INSERT INTO job_runs (RUN_COLUMNS) SELECT COPIED_RUN FROM job_runs`."""


def move(run_id: int, target: RunState, actor: Actor, **changes: Any) -> Executable:
    """A complete move: actor set, version raised, every column as the target state demands."""
    values = {
        "state": target,
        "version": job_runs.c.version + 1,
        "moved_at": MOMENT,
        "moved_as": actor,
        "moved_by": "operator-1",
        "moved_epoch": 1,
        **COLUMNS_OF_STATE[target],
        **changes,
    }
    return update(job_runs).where(job_runs.c.id == run_id).values(**values)


def change(run_id: int, **changes: Any) -> Executable:
    """A change of columns that is not a move."""
    return update(job_runs).where(job_runs.c.id == run_id).values(**changes)


def copy_of(database: Database, table: Table, key: dict[str, Any], **changes: Any) -> Executable:
    """An INSERT of a copy of a row, with some values changed (`...` leaves a column out)."""
    with database.read() as connection:
        row = connection.execute(select(table).filter_by(**key)).mappings().one()
    values = {**row, **changes}
    return insert(table).values({name: v for name, v in values.items() if v is not ...})


def in_words(sql: str, **parameters: Any) -> Executable:
    return text(sql).bindparams(*(bindparam(name, value) for name, value in parameters.items()))


def send(database: Database, statement: Executable) -> None:
    with database.write() as connection:
        connection.execute(statement)


def answer(database: Database, statement: Executable) -> str | None:
    """None if the database accepts the statement, otherwise the first line of its error."""
    try:
        send(database, statement)
    except IntegrityError as problem:
        return str(problem.orig).splitlines()[0]
    return None


def refusal(database: Database, statement: Executable) -> str:
    """The first line of the error with which the database refuses the statement. Fails the test if
    it accepts it."""
    words = answer(database, statement)
    if words is None:
        pytest.fail(f"the database accepted: {statement}")
    return words
