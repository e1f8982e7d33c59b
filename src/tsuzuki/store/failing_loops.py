"""Loops that keep failing, as their processes report them."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Text, bindparam, delete, insert, or_, select

from tsuzuki.model.loop_failure import LoopFailure
from tsuzuki.store.schema.operation_tables import failing_loops
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import execute, parameters_for

SEEN_SECONDS_MAX = 30.0
"""A process reports its failing loops every few seconds. One that has not for longer than this is gone."""


class FailingLoop(NamedTuple):
    process: str
    failure: LoopFailure


_FORGET = delete(failing_loops).where(
    or_(
        failing_loops.c.process == bindparam("of_process", type_=Text()),
        failing_loops.c.seen_at < db_now(-SEEN_SECONDS_MAX),
    )
)
_COLUMNS = ("process", "loop", "failures", "since", "code", "error")
_ADD = insert(failing_loops).values(**parameters_for(failing_loops, *_COLUMNS), seen_at=db_now())


def replace(connection: Connection, *, process: str, failures: Sequence[LoopFailure]) -> None:
    """Store which loops of a process are failing, and no others. Rows of processes that are gone are deleted."""
    execute(connection, _FORGET, {"of_process": process})
    for failure in failures:
        execute(connection, _ADD, {"process": process, **vars(failure)})


_FIND = (
    select(*(failing_loops.c[name] for name in _COLUMNS))
    .where(failing_loops.c.seen_at >= db_now(-SEEN_SECONDS_MAX))
    .order_by(failing_loops.c.since, failing_loops.c.process, failing_loops.c.loop)
)


def find(connection: Connection) -> list[FailingLoop]:
    """Those of all processes, the oldest first."""
    return [
        FailingLoop(
            process,
            LoopFailure(loop=loop, failures=failures, since=since, code=code, error=error),
        )
        for process, loop, failures, since, code, error in execute(connection, _FIND, {}).all()
    ]
