"""Requested cancels: runs that are to be canceled, and whose row another transaction held at that moment.

A request is a row of its own, so it is stored at once, whatever the run's handler does. The worker stops the handler,
and worker or leader cancels the run when its row is free. A run that ends before keeps its end, but is not retried:
`runs.create` stores no retry of a run with a request.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    exists,
    literal,
    select,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.model.run import CancelRequest
from tsuzuki.model.states import Reason
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.rows import cancel_request_from
from tsuzuki.store.schema.operation_tables import run_cancel_requests
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import upsert_from
from tsuzuki.store.sql.prepared import execute, execute_batch
from tsuzuki.store.sql.value_list import in_list

_REQUEST = run_cancel_requests.c
_ID_COLUMN: Columns = {"run_id": BigInteger()}

ANY_REQUEST = exists(select(_REQUEST.run_id))


def add(
    connection: Connection,
    run_ids: Sequence[int],
    *,
    reason: Reason,
    requested_by: str,
    term: Term | None = None,
) -> frozenset[int]:
    """Request to cancel these runs. Answers those that had no request yet: the first one for a run stands. With a
    `term`, nothing is stored once that term is over."""
    values = {"reason": reason.value, "by": requested_by, **(term.parameters if term else {})}
    statement = partial(_insert, is_led=term is not None)
    rows = [(run_id,) for run_id in run_ids]
    return frozenset(execute_batch(connection, statement, _ID_COLUMN, rows, values).scalars())


@lru_cache
def _insert(dialect: Dialect, varying: tuple[str, ...], *, is_led: bool) -> ReturningInsert[Any]:
    source = unpack(dialect, _ID_COLUMN, varying)
    rows = select(
        source.c.run_id,
        bindparam("reason", type_=Text()),
        bindparam("by", type_=Text()),
        db_now(),
    ).where(TERM_IS_CURRENT if is_led else literal(value=True))  # SQLite's parser needs a WHERE
    names = ["run_id", "reason", "requested_by", "requested_at"]
    added: ReturningInsert[Any] = (
        upsert_from(dialect, run_cancel_requests, names, rows)
        .on_conflict_do_nothing()
        .returning(_REQUEST.run_id)
    )
    return added


_PAGE = (
    select(*run_cancel_requests.c)
    .where(_REQUEST.run_id > bindparam("after_id", type_=BigInteger()))
    .order_by(_REQUEST.run_id)
    .limit(bindparam("limit", type_=Integer()))
)
_OF_RUNS = select(*run_cancel_requests.c).where(in_list(_REQUEST.run_id, "ids"))
_DELETE = (
    delete(run_cancel_requests)
    .where(in_list(_REQUEST.run_id, "ids"))
    .returning(*run_cancel_requests.c)
)
_DELETE_LED = _DELETE.where(TERM_IS_CURRENT)


def page(connection: Connection, *, after_id: int = 0, limit: int) -> list[CancelRequest]:
    """Requests by run id. `after_id` continues a page."""
    rows = execute(connection, _PAGE, {"after_id": after_id, "limit": limit}).mappings()
    return [cancel_request_from(row) for row in rows]


def of_runs(connection: Connection, run_ids: Collection[int]) -> dict[int, CancelRequest]:
    """The requests for these runs, by run."""
    rows = execute(connection, _OF_RUNS, {"ids": sorted(run_ids)}).mappings()
    return {row["run_id"]: cancel_request_from(row) for row in rows}


def remove(
    connection: Connection, run_ids: Collection[int], *, term: Term | None = None
) -> list[CancelRequest]:
    """Remove the requests for these runs. Answers those that were removed here, and not by another process. With a
    `term`, nothing is removed once that term is over."""
    if not run_ids:
        return []
    statement = _DELETE_LED if term else _DELETE
    values = {"ids": sorted(run_ids), **(term.parameters if term else {})}
    return [cancel_request_from(row) for row in execute(connection, statement, values).mappings()]
