"""Statements as a person with a database shell would send them, past every function of the store."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Executable, Table, bindparam, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from tsuzuki.model.states import Actor, Reason, RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

MOMENT = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
SOMEBODY = "host-1-aaaa"

COLUMNS_OF_STATE: dict[RunState, dict[str, Any]] = {
    RunState.PENDING: {"assigned_worker_id": None, "started_at": None, "finished_at": None},
    RunState.ASSIGNED: {
        "assigned_worker_id": SOMEBODY,
        "assigned_at": MOMENT,
        "started_at": None,
        "finished_at": None,
    },
    RunState.RUNNING: {
        "assigned_worker_id": SOMEBODY,
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
"""What a row must say, by its CHECKs, to be in a state at all."""


def move(run_id: int, target: RunState, actor: Actor, **changes: Any) -> Executable:
    """A careful move: signed, version raised, every column as the target state wants it."""
    values = {
        "state": target,
        "version": job_runs.c.version + 1,
        "moved_at": MOMENT,
        "moved_as": actor,
        "moved_by": "somebody",
        **COLUMNS_OF_STATE[target],
        **changes,
    }
    return update(job_runs).where(job_runs.c.id == run_id).values(**values)


def change(run_id: int, **changes: Any) -> Executable:
    """A change of columns that is not a move."""
    return update(job_runs).where(job_runs.c.id == run_id).values(**changes)


def copy_of(database: Database, table: Table, key: dict[str, Any], **changes: Any) -> Executable:
    """An INSERT of a row as it stands, with some values changed (`...` leaves a column out)."""
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
    """None if the database accepts the statement, otherwise its first words of refusal."""
    try:
        send(database, statement)
    except IntegrityError as problem:
        return str(problem.orig).splitlines()[0]
    return None


def refusal(database: Database, statement: Executable) -> str:
    """The first words with which the database refuses the statement; the test fails if it does
    not."""
    words = answer(database, statement)
    if words is None:
        pytest.fail(f"the database accepted: {statement}")
    return words
