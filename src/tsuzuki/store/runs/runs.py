"""Runs: created and read here.

A run is created PENDING at version 1, always; every later change of its state is a move (`store.runs.moves`).
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache, partial
from secrets import token_hex
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    cast,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.model.job import Job
from tsuzuki.model.run import NewRun, Run, Transition, retry_key
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import (
    RunState,
    Trigger,
)
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.rows import RUN_COLUMNS, TRANSITION_COLUMNS, run_from, transition_from
from tsuzuki.store.runs.indexed_states import sorted_by_index
from tsuzuki.store.runs.run_filter import conditions
from tsuzuki.store.schema.operation_tables import run_cancel_requests
from tsuzuki.store.schema.tables import job_definitions, job_run_transitions, job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import is_sqlite, upsert_from
from tsuzuki.store.sql.prepared import AnyConnection, execute, execute_batch
from tsuzuki.store.sql.types import JsonText, KeyText, PlainText, UtcTime
from tsuzuki.store.sql.value_list import in_list
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

NEW_COLUMNS: Columns = {
    "job_definition_id": BigInteger(),
    "trigger": Text(),
    "scheduled_for": UtcTime(),
    "arguments": JsonText(),
    "priority": Integer(),
    "idempotency_key": KeyText(),
    "concurrency_key": PlainText(),
    "event_id": BigInteger(),
    "attempt": Integer(),
    "retries_used": Integer(),
    "retry_of": BigInteger(),
    "origin_id": BigInteger(),
    "covers_ticks": Integer(),
    "covers_until": UtcTime(),
    "losses": Integer(),
    "losses_free": Integer(),
    "work_key": KeyText(),
    "defaulted_arguments": JsonText(),
    "blocked_by": BigInteger(),
}


def create(
    connection: AnyConnection,
    runs: Sequence[NewRun],
    *,
    term: Term | None = None,
    of: Job | None = None,
) -> list[int | None]:
    """Store new runs, and wake the leader. Answers a new id for each run, or None where its idempotency key,
    or the tick of its job, has a run already, or where it retries a run whose cancel was requested. With a
    `term`, nothing is stored once that term is over. With `of`, the job of all these runs, nothing is stored
    once that job has changed."""
    if not runs:
        return []
    is_keyed = any(r.idempotency_key is not None or r.trigger is Trigger.TIME for r in runs)
    is_retry = any(r.retry_of is not None for r in runs)
    statement = partial(
        _insert,
        is_led=term is not None,
        is_known=of is not None,
        is_keyed=is_keyed,
        is_retry=is_retry,
    )
    parameters: dict[str, Any] = {"salt": token_hex(10)}
    if term is not None:
        parameters |= term.parameters
    if of is not None:
        parameters |= {
            "of_id": of.id,
            "of_name": of.spec.name,
            "of_version": of.version,
            "of_updated_at": of.updated_at,
        }
    created = execute_batch(connection, statement, NEW_COLUMNS, runs, parameters)
    if term is None and is_sqlite(connection.dialect):
        # PostgreSQL notifies the leader by itself (a trigger) when runs are created.
        channels.notify(connection, WakeupChannel.LEADER)
    if is_keyed:
        return _in_requested_order(runs, created.all())
    ids = sorted(created.scalars())
    # A term that is over, or a job that changed, stores none; nothing else refuses a run without a key.
    return [*ids] if ids else [None] * len(runs)


@lru_cache
def _insert(
    dialect: Dialect,
    varying: tuple[str, ...],
    *,
    is_led: bool,
    is_known: bool,
    is_keyed: bool,
    is_retry: bool,
) -> ReturningInsert[Any]:
    source = unpack(dialect, NEW_COLUMNS, varying)
    values: dict[str, ColumnElement[Any]] = {name: source.c[name] for name in NEW_COLUMNS}
    values["scheduled_for"] = func.coalesce(source.c.scheduled_for, db_now())
    values["work_key"] = func.coalesce(source.c.work_key, _random_key(dialect, varying))
    chosen = select(*values.values(), literal(RunState.PENDING.value), literal(1), db_now())
    if is_led:
        chosen = chosen.where(TERM_IS_CURRENT)
    if is_known:
        chosen = chosen.where(_UNCHANGED)
    if is_retry:
        requested = select(run_cancel_requests.c.run_id)
        chosen = chosen.where(
            ~exists(requested.where(run_cancel_requests.c.run_id == source.c.retry_of))
        )
    names = [*NEW_COLUMNS, "state", "version", "created_at"]
    if not is_keyed:
        # Nothing can conflict, and an ON CONFLICT clause makes the statement a fifth slower.
        return insert(job_runs).from_select(names, chosen).returning(job_runs.c.id)
    keyed = upsert_from(dialect, job_runs, names, chosen).on_conflict_do_nothing()
    returning: ReturningInsert[Any] = keyed.returning(*_IDENTITY)
    return returning


def _random_key(dialect: Dialect, varying: Sequence[str]) -> ColumnElement[str]:
    """80 random bits; several rows of PostgreSQL share them, and have their number behind it, because random bits for
    each would cost it as much as the insert. Not the number of the run: other installations, and this one after a
    backup was restored, give the same numbers."""
    salt = bindparam("salt", type_=Text())
    if not varying:
        return salt
    if is_sqlite(dialect):
        return func.lower(func.hex(func.randomblob(10)))
    return salt + "-" + cast(func.row_number().over(), Text())


# Name and time too: after a rollback on SQLite, or a failover that lost the last changes, another job may have the same
# id, and another definition the same version.
_UNCHANGED = exists(
    select(job_definitions.c.id).where(
        job_definitions.c.id == bindparam("of_id", type_=BigInteger()),
        job_definitions.c.name == bindparam("of_name", type_=Text()),
        job_definitions.c.version == bindparam("of_version", type_=Integer()),
        job_definitions.c.updated_at == bindparam("of_updated_at", type_=UtcTime()),
        job_definitions.c.deleted_at.is_(None),
    )
)
_IDENTITY = [
    job_runs.c.id,
    job_runs.c.trigger,
    job_runs.c.job_definition_id,
    job_runs.c.scheduled_for,
    job_runs.c.idempotency_key,
]


def _in_requested_order(
    runs: Sequence[NewRun], created: Sequence[Sequence[Any]]
) -> list[int | None]:
    """Match the stored runs to the requested ones: by idempotency key or tick where they have one, and the
    keyless rest, which cannot conflict, in the order of their ids."""
    by_key: dict[str, int] = {}
    by_tick: dict[tuple[int, datetime | None], int] = {}
    others: list[int] = []
    for run_id, trigger, job_id, scheduled_for, key in created:
        if key is not None:
            by_key[key] = run_id
        elif trigger == Trigger.TIME:
            by_tick[job_id, scheduled_for] = run_id
        else:
            others.append(run_id)
    keyless = iter(sorted(others))
    answer: list[int | None] = []
    for run in runs:
        if run.idempotency_key is not None:
            answer.append(by_key.pop(run.idempotency_key, None))
        elif run.trigger is Trigger.TIME:
            answer.append(by_tick.pop((run.job_definition_id, run.scheduled_for), None))
        else:
            answer.append(next(keyless, None))
    return answer


_RUN_COLUMNS = [job_runs.c[name] for name in RUN_COLUMNS]
SELECT_RUNS = select(*_RUN_COLUMNS, job_definitions.c.name.label("job_name")).join_from(
    job_runs, job_definitions, job_definitions.c.id == job_runs.c.job_definition_id
)
_JOINED = SELECT_RUNS.with_only_columns(job_runs.c.id, maintain_column_froms=True)
_BY_ID = SELECT_RUNS.where(job_runs.c.id == bindparam("id", type_=BigInteger()))
_BY_IDS = SELECT_RUNS.where(in_list(job_runs.c.id, "ids")).order_by(job_runs.c.id)
_BY_KEY = SELECT_RUNS.where(job_runs.c.idempotency_key == bindparam("key", type_=KeyText()))
_DEFAULTED = select(job_runs.c.defaulted_arguments).where(
    job_runs.c.id == bindparam("id", type_=BigInteger())
)
_LIVE_OF_JOB = SELECT_RUNS.where(
    job_runs.c.job_definition_id == bindparam("job", type_=BigInteger()),
    job_runs.c.finished_at.is_(None),
).order_by(job_runs.c.id)
_LIVE_NOW_OF_JOB = _LIVE_OF_JOB.where(
    or_(
        job_runs.c.state != RunState.PENDING.value,
        job_runs.c.scheduled_for <= bindparam("now", type_=UtcTime()),
        job_runs.c.retry_of.is_not(None),
    )
)
_NEWEST_LIVE = _LIVE_OF_JOB.order_by(None).order_by(job_runs.c.id.desc()).limit(1)
_MOVES = (
    select(*(job_run_transitions.c[name] for name in TRANSITION_COLUMNS))
    .where(job_run_transitions.c.run_id == bindparam("id", type_=BigInteger()))
    .order_by(job_run_transitions.c.version)
)


def get(connection: Connection, run_id: int) -> Run | None:
    row = execute(connection, _BY_ID, {"id": run_id}).mapping_or_none()
    return None if row is None else run_from(row)


def get_many(connection: Connection, run_ids: Sequence[int]) -> list[Run]:
    """In the order of their ids; unknown ones are left out."""
    return [run_from(row) for row in execute(connection, _BY_IDS, {"ids": run_ids}).mappings()]


def get_by_key(connection: Connection, idempotency_key: str) -> Run | None:
    row = execute(connection, _BY_KEY, {"key": idempotency_key}).mapping_or_none()
    return None if row is None else run_from(row)


def defaulted_arguments(connection: Connection, run_id: int) -> frozenset[str]:
    """The names of the run's arguments that its request left to the defaults of the job."""
    return frozenset(execute(connection, _DEFAULTED, {"id": run_id}).scalar_one() or ())


def get_retry(connection: Connection, run_id: int) -> Run | None:
    """The run that retries another."""
    return get_by_key(connection, retry_key(run_id))


def find(connection: Connection, wanted: RunFilter) -> list[Run]:
    return [run_from(row._asdict()) for row in connection.execute(find_statement(wanted))]


def find_statement(wanted: RunFilter) -> Select[Any]:
    # The `+ 0` keeps the primary key from being used for the order.
    order = job_runs.c.id + 0 if sorted_by_index(wanted.wanted_states) else job_runs.c.id
    return SELECT_RUNS.where(*conditions(wanted)).order_by(order.desc()).limit(wanted.limit)


def page_of(
    connection: Connection, wanted: RunFilter, *, after_id: int, up_to_id: int
) -> list[Run]:
    """Runs between two ids, the second included, oldest first."""
    between = (job_runs.c.id > after_id, job_runs.c.id <= up_to_id)
    statement = SELECT_RUNS.where(*conditions(wanted), *between)
    rows = connection.execute(statement.order_by(job_runs.c.id).limit(wanted.limit))
    return [run_from(row._asdict()) for row in rows]


def count(connection: Connection, wanted: RunFilter, *, at_most: int) -> int:
    """How many runs there are; the scan ends after `at_most`."""
    found = _JOINED.where(*conditions(wanted)).limit(at_most).subquery()
    return int(connection.execute(select(func.count()).select_from(found)).scalar_one())


def newest_id(connection: Connection) -> int:
    """The id of the newest run; 0 if there is none."""
    return int(execute(connection, _NEWEST_ID).scalar_one())


_NEWEST_ID = select(func.coalesce(func.max(job_runs.c.id), 0))


def find_live(connection: Connection, job_id: int) -> list[Run]:
    """Every unfinished run of a job, oldest first."""
    return [run_from(row) for row in execute(connection, _LIVE_OF_JOB, {"job": job_id}).mappings()]


def find_live_now(connection: Connection, job_id: int, *, now: datetime) -> list[Run]:
    """The same without what is to start later. A retry is not left out: it goes on with a run that is unfinished."""
    where = {"job": job_id, "now": now}
    return [run_from(row) for row in execute(connection, _LIVE_NOW_OF_JOB, where).mappings()]


def newest_live(connection: Connection, job_id: int) -> Run | None:
    """The newest unfinished run of a job."""
    row = execute(connection, _NEWEST_LIVE, {"job": job_id}).mapping_or_none()
    return None if row is None else run_from(row)


def history(connection: Connection, run_id: int) -> list[Transition]:
    """Every accepted move of a run, in order."""
    return [transition_from(row) for row in execute(connection, _MOVES, {"id": run_id}).mappings()]
