"""Bulk actions and what became of each of their runs.

The position of an action moves forward in the transaction that changes the runs before it, so an action that
is carried out twice, or by two processes at once, changes each run once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import Insert

from tsuzuki.model.bulk import BulkResult, BulkVerb
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.schema.operation_tables import bulk_action_runs, bulk_actions
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import execute, execute_batch, parameters_for
from tsuzuki.store.sql.types import UtcTime


@dataclass(frozen=True, kw_only=True)
class BulkAction:
    """A stored action. `run_id` is the run that carries a retry out, or last did; a cancel has none."""

    id: int
    verb: BulkVerb
    filter: dict[str, Any]
    ceiling_id: int
    matched: int
    created_at: datetime
    created_by: str
    confirmed_at: datetime | None
    confirmed_by: str | None
    run_id: int | None
    position: int
    done: int
    stopped_at: datetime | None
    finished_at: datetime | None


class ResultOfRun(NamedTuple):
    """What an action did to one run."""

    run_id: int
    result: BulkResult
    new_run_id: int | None = None


_BULK = bulk_actions.c
_ID = bindparam("wanted", type_=BigInteger())
_CREATE = (
    insert(bulk_actions)
    .values(
        **parameters_for(bulk_actions, "verb", "filter", "ceiling_id", "matched", "created_by"),
        created_at=db_now(),
    )
    .returning(_BULK.id)
)


def create(
    connection: Connection,
    *,
    verb: BulkVerb,
    frozen: dict[str, Any],
    ceiling_id: int,
    matched: int,
    actor: str,
) -> int:
    values = {
        "verb": verb.value,
        "filter": frozen,
        "ceiling_id": ceiling_id,
        "matched": matched,
        "created_by": actor,
    }
    return int(execute(connection, _CREATE, values).scalar_one())


_GET = select(bulk_actions).where(_BULK.id == _ID)


def get(connection: Connection, bulk_id: int) -> BulkAction | None:
    row = execute(connection, _GET, {"wanted": bulk_id}).mapping_or_none()
    return None if row is None else _action_from(row)


_FIND = (
    select(bulk_actions)
    .where(_BULK.id < bindparam("before_id", type_=BigInteger()))
    .order_by(_BULK.id.desc())
    .limit(bindparam("limit", type_=Integer()))
)


def find(connection: Connection, *, before_id: int, limit: int) -> list[BulkAction]:
    """Newest first."""
    rows = execute(connection, _FIND, {"before_id": before_id, "limit": limit}).mappings()
    return [_action_from(row) for row in rows]


_COUNT = select(func.count()).select_from(
    select(_BULK.id).limit(bindparam("at_most", type_=Integer())).subquery()
)


def count(connection: Connection, *, at_most: int) -> int:
    """How many there are; the scan ends after `at_most`."""
    return int(execute(connection, _COUNT, {"at_most": at_most}).scalar_one())


_CONFIRM = (
    update(bulk_actions)
    .where(
        _BULK.id == _ID,
        _BULK.confirmed_at.is_(None),
        _BULK.created_at > bindparam("made_after", type_=UtcTime()),
    )
    .values(confirmed_at=db_now(), confirmed_by=bindparam("actor", type_=Text()))
    .returning(_BULK.id)
)


def confirm(connection: Connection, bulk_id: int, *, actor: str, made_after: datetime) -> bool:
    """False if it was confirmed before, or was made too long ago."""
    values = {"wanted": bulk_id, "actor": actor, "made_after": made_after}
    return execute(connection, _CONFIRM, values).one_or_none() is not None


_GOES_ON = (
    _BULK.id == _ID,
    _BULK.confirmed_at.is_not(None),
    _BULK.stopped_at.is_(None),
    _BULK.finished_at.is_(None),
)
_IS_ACTIVE_CANCEL = (
    _BULK.verb == BulkVerb.CANCEL.value,
    *_GOES_ON[1:],
)
ANY_ACTIVE_CANCEL = exists(select(_BULK.id).where(*_IS_ACTIVE_CANCEL))
_ACTIVE_CANCELS = select(bulk_actions).where(*_IS_ACTIVE_CANCEL).order_by(_BULK.id)
_NEXT_CANCEL = _ACTIVE_CANCELS.limit(1).with_for_update(skip_locked=True)


def active_cancels(connection: Connection) -> list[BulkAction]:
    """Confirmed cancels that are not carried out yet, oldest first."""
    return [_action_from(row) for row in execute(connection, _ACTIVE_CANCELS).mappings()]


def next_cancel(connection: Connection) -> BulkAction | None:
    """The oldest of them, locked for this transaction; None if there is none, or another process holds it."""
    row = execute(connection, _NEXT_CANCEL).mapping_or_none()
    return None if row is None else _action_from(row)


# Only a retry: of a cancel that a former version confirmed there may be a run too, and the leader carries it out.
_TAKE = (
    update(bulk_actions)
    .where(*_GOES_ON, _BULK.verb == BulkVerb.RETRY.value)
    .values(run_id=bindparam("run", type_=BigInteger()))
    .returning(*bulk_actions.c)
)


def take(connection: Connection, bulk_id: int, *, run_id: int) -> BulkAction | None:
    """A retry as it stands, locked for this transaction, carried out by this run from now on. None if nothing is left
    to do."""
    row = execute(connection, _TAKE, {"wanted": bulk_id, "run": run_id}).mapping_or_none()
    return None if row is None else _action_from(row)


_ADVANCE = (
    update(bulk_actions)
    .where(*_GOES_ON)
    .values(
        position=bindparam("to", type_=BigInteger()),
        done=_BULK.done + bindparam("more", type_=Integer()),
    )
    .returning(_BULK.id)
)
_FINISH = update(bulk_actions).where(*_GOES_ON).values(finished_at=db_now()).returning(_BULK.id)
_ADVANCE_LED = _ADVANCE.where(TERM_IS_CURRENT)
_FINISH_LED = _FINISH.where(TERM_IS_CURRENT)
_STOP = update(bulk_actions).where(*_GOES_ON).values(stopped_at=db_now()).returning(_BULK.id)
_RESULTS: Columns = {
    "run_id": BigInteger(),
    "result": Text(),
    "new_run_id": BigInteger(),
}


def advance(
    connection: Connection,
    bulk_id: int,
    *,
    position: int,
    results: Sequence[ResultOfRun],
    term: Term | None = None,
) -> bool:
    """Store what became of these runs, and up to which run the action is carried out, in the transaction that changed
    them. With a `term`, nothing is stored once that term is over: then the answer is False."""
    values = {"wanted": bulk_id, "to": position, "more": len(results), **_led_by(term)}
    statement = _ADVANCE_LED if term else _ADVANCE
    if execute(connection, statement, values).one_or_none() is None:
        return False
    execute_batch(connection, _insert_results, _RESULTS, results, {"bulk": bulk_id})
    return True


def _led_by(term: Term | None) -> dict[str, Any]:
    return term.parameters if term else {}


@lru_cache
def _insert_results(dialect: Dialect, varying: tuple[str, ...]) -> Insert:
    source = unpack(dialect, _RESULTS, varying)
    bulk_id = bindparam("bulk", type_=BigInteger())
    rows = select(bulk_id, source.c.run_id, source.c.result, source.c.new_run_id)
    return insert(bulk_action_runs).from_select(["bulk_id", "run_id", "result", "new_run_id"], rows)


def finish(connection: Connection, bulk_id: int, *, term: Term | None = None) -> bool:
    """False if it has ended, or with a `term`, if that term is over."""
    values = {"wanted": bulk_id, **_led_by(term)}
    return execute(connection, _FINISH_LED if term else _FINISH, values).one_or_none() is not None


def stop(connection: Connection, bulk_id: int) -> bool:
    """False if it is not confirmed, or has ended."""
    return execute(connection, _STOP, {"wanted": bulk_id}).one_or_none() is not None


_RESULTS_OF = (
    select(bulk_action_runs.c.run_id, bulk_action_runs.c.result, bulk_action_runs.c.new_run_id)
    .where(
        bulk_action_runs.c.bulk_id == _ID,
        bulk_action_runs.c.run_id > bindparam("after_run", type_=BigInteger()),
    )
    .order_by(bulk_action_runs.c.run_id)
    .limit(bindparam("limit", type_=Integer()))
)


def results(
    connection: Connection, bulk_id: int, *, after_run_id: int = 0, limit: int = 100
) -> list[ResultOfRun]:
    """What became of its runs, by run id. `after_run_id` continues a page."""
    wanted = {"wanted": bulk_id, "after_run": after_run_id, "limit": limit}
    return [
        ResultOfRun(run_id, BulkResult(result), new_run_id)
        for run_id, result, new_run_id in execute(connection, _RESULTS_OF, wanted).all()
    ]


_DELETE_OLD = delete(bulk_actions).where(
    _BULK.created_at < bindparam("made_before", type_=UtcTime()),
    (_BULK.confirmed_at.is_(None)) | (_BULK.created_at < bindparam("any_before", type_=UtcTime())),
)


def delete_old(connection: Connection, *, previews_before: datetime, all_before: datetime) -> None:
    """Delete previews that were not confirmed, and after longer the actions with their results."""
    values = {"made_before": previews_before, "any_before": all_before}
    execute(connection, _DELETE_OLD, values)


def _action_from(row: dict[str, Any]) -> BulkAction:
    return BulkAction(**{**row, "verb": BulkVerb(row["verb"])})
