"""Live stacks of runs: requested by whoever looks at a run, answered by its worker."""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, delete, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.store.schema.operation_tables import run_stacks
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for
from tsuzuki.store.sql.value_list import in_list

REQUESTED_SECONDS_MAX = 10.0
"""An older request is not answered: nobody waits for it any more."""

KEPT_SECONDS = 60.0


class RunStack(NamedTuple):
    """Where the function of a run was at a moment."""

    stack: str
    at: datetime


_TABLE = run_stacks.c
_RUN_ID = bindparam("of_run", type_=BigInteger())
_FORGET = delete(run_stacks).where(_TABLE.requested_at < db_now(-KEPT_SECONDS))


@lru_cache
def _request(dialect: Dialect) -> object:
    asked = {"requested_at": db_now(), "stack": None, "dumped_at": None}
    return (
        insert_into(dialect, run_stacks)
        .values(run_id=_RUN_ID, **asked)
        .on_conflict_do_update(index_elements=[_TABLE.run_id], set_=asked)
    )


def request(connection: Connection, run_id: int) -> None:
    """Ask the worker of a run for its stack. An answer to an earlier request is gone."""
    execute(connection, _FORGET, {})
    execute(connection, _request(connection.dialect), {"of_run": run_id})


_REQUESTED = select(_TABLE.run_id).where(
    in_list(_TABLE.run_id, "ids"),
    _TABLE.dumped_at.is_(None),
    _TABLE.requested_at >= db_now(-REQUESTED_SECONDS_MAX),
)


def requested(connection: Connection, run_ids: Collection[int]) -> list[int]:
    """Those of these runs whose stack somebody waits for."""
    return list(execute(connection, _REQUESTED, {"ids": sorted(run_ids)}).scalars())


_STORE = (
    update(run_stacks)
    .where(_TABLE.run_id == _RUN_ID, _TABLE.dumped_at.is_(None))
    .values(**parameters_for(run_stacks, "stack"), dumped_at=db_now())
)


def store(connection: Connection, run_id: int, stack: str) -> None:
    """The answer, if it is still waited for."""
    execute(connection, _STORE, {"of_run": run_id, "stack": stack})


_GET = select(_TABLE.stack, _TABLE.dumped_at).where(
    _TABLE.run_id == _RUN_ID, _TABLE.dumped_at.is_not(None)
)


def get(connection: Connection, run_id: int) -> RunStack | None:
    """The answer to the last request, if there is one."""
    row = execute(connection, _GET, {"of_run": run_id}).one_or_none()
    return None if row is None else RunStack(*row)
