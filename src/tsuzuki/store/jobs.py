"""Job definitions, with optimistic locking: a change names the version it was made against. A removed job
keeps its row, and gets it back when a job of its name is added again: its runs in progress count towards its limits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    Update,
    bindparam,
    cast,
    false,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert

from tsuzuki.model.abilities import COMMAND_KIND
from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.model.schedule import UnreadableSchedule
from tsuzuki.store.leadership import TERM_IS_CURRENT, Term
from tsuzuki.store.rows import SPEC_COLUMNS, columns_of, job_from
from tsuzuki.store.schema.tables import job_definitions
from tsuzuki.store.sql.advisory_lock import lock_until_commit
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.prepared import execute, execute_batch, parameters_for
from tsuzuki.store.sql.types import UtcTime
from tsuzuki.store.sql.value_list import in_list
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

_CONCERNED = (WakeupChannel.LEADER, WakeupChannel.WORKERS)
"""Who is woken when a definition changes."""

BATCH_MAX = 500
"""Jobs per statement."""

CHANGES_LOCK_KEY = 0x6A6F6273  # "jobs": one advisory lock for all changes of definitions
NONE_KNOWN: Mapping[int, Job] = MappingProxyType({})


def hold(connection: Connection) -> None:
    """Lock all definitions against changes by other processes until this transaction ends: two processes that
    apply a file at the same time must not undo each other. SQLite has one writer anyway."""
    lock_until_commit(connection, CHANGES_LOCK_KEY)


_CHANGE_NONE = update(job_definitions).where(false()).values(priority=job_definitions.c.priority)


def require_writable(connection: Connection) -> None:
    """Raises if this transaction cannot change a job, on a standby for example. PostgreSQL refuses no lock
    there and no BEGIN, only a statement that could write."""
    execute(connection, _CHANGE_NONE)


_SPEC = parameters_for(job_definitions, *SPEC_COLUMNS)
_ADD_COLUMNS: Columns = {
    "name": job_definitions.c.name.type,
    **{name: job_definitions.c[name].type for name in (*_SPEC, "source")},
}


def add(connection: Connection, spec: JobSpec, *, source: JobSource) -> int:
    """Store a new job. Its ticks are planned from now on."""
    (job_id,) = add_many(connection, [spec], source=source)
    return job_id


def add_many(connection: Connection, specs: Sequence[JobSpec], *, source: JobSource) -> list[int]:
    """Store new jobs, and wake leader and workers. Returns their ids, in no order."""
    columns = {spec.name: {**columns_of(spec), "source": source} for spec in specs}
    ids = _restore(connection, columns)
    rows = [[one[name] for name in _ADD_COLUMNS] for one in columns.values()]
    for first in range(0, len(rows), BATCH_MAX):
        batch = rows[first : first + BATCH_MAX]
        ids += execute_batch(connection, _add, _ADD_COLUMNS, batch).scalars()
    channels.notify(connection, *_CONCERNED)
    return ids


_REMOVED = (
    select(job_definitions.c.name, func.max(job_definitions.c.id))
    .where(job_definitions.c.deleted_at.is_not(None), in_list(job_definitions.c.name, "names"))
    .group_by(job_definitions.c.name)
)
_RESTORE = (
    update(job_definitions)
    .where(
        job_definitions.c.id == bindparam("of_id", type_=BigInteger()),
        job_definitions.c.deleted_at.is_not(None),
    )
    .values(
        **_SPEC,
        **parameters_for(job_definitions, "source"),
        version=job_definitions.c.version + 1,
        planned_until=db_now(),
        updated_at=db_now(),
        deleted_at=None,
    )
)


def _restore(connection: Connection, columns: dict[str, dict[str, Any]]) -> list[int]:
    """Give jobs the row that a removed job of their name left, and take them out of `columns`. Returns their ids."""
    removed = execute(connection, _REMOVED, {"names": [*columns]}).all()
    ids: list[int] = []
    for name, job_id in removed:
        if execute(connection, _RESTORE, {**columns[name], "of_id": job_id}).rowcount == 1:
            del columns[name]
            ids.append(job_id)
    return ids


@lru_cache
def _add(dialect: Dialect, varying: tuple[str, ...]) -> ReturningInsert[Any]:
    rows = unpack(dialect, _ADD_COLUMNS, varying)
    now = {name: db_now() for name in ("planned_until", "created_at", "updated_at")}
    # A column that is constant over all rows is a bare parameter: PostgreSQL takes it for a text.
    values = [cast(rows.c[name], kind) for name, kind in _ADD_COLUMNS.items()]
    added = select(*values, literal(1), *now.values())
    names = [*_ADD_COLUMNS, "version", *now]
    return insert(job_definitions).from_select(names, added).returning(job_definitions.c.id)


_AS_READ = (
    job_definitions.c.id == bindparam("of_id", type_=BigInteger()),
    job_definitions.c.version == bindparam("of_version", type_=Integer()),
    job_definitions.c.updated_at == bindparam("of_updated_at", type_=UtcTime()),
)
_UPDATE = (
    update(job_definitions)
    .where(*_AS_READ, job_definitions.c.deleted_at.is_(None))
    .values(version=job_definitions.c.version + 1, updated_at=db_now())
)
_CHANGE = _UPDATE.values(**_SPEC)
_CHANGE_AND_REPLAN = _CHANGE.values(**parameters_for(job_definitions, "planned_until"))
_REMOVE = _UPDATE.values(deleted_at=db_now(), enabled=False)


class Planning(NamedTuple):
    """How far a job has been planned, and the database's time."""

    until: datetime
    now: datetime


_PLANNED_UNTIL = (
    select(job_definitions.c.planned_until)
    .where(*_AS_READ, job_definitions.c.deleted_at.is_(None))
    .with_for_update(key_share=True)
)
_NOW = select(db_now())


def hold_planning(connection: Connection, *, job: Job) -> Planning | None:
    """Lock a job against planning until this transaction ends, or answer None if it was changed since `job` was
    read."""
    until = execute(connection, _PLANNED_UNTIL, _as_read(job)).scalar_one_or_none()
    if until is None:
        return None
    # A statement of its own: after a wait for the lock, the time is later than that of the planning we waited for.
    return Planning(until, execute(connection, _NOW).scalar_one())


def change(
    connection: Connection, *, job: Job, spec: JobSpec, planned_until: datetime | None = None
) -> bool:
    """Replace a job's definition, unless it was changed since `job` was read (optimistic locking). With
    `planned_until`, its ticks are planned from then on."""
    values = columns_of(spec)
    if planned_until is None:
        return _update(connection, _CHANGE, job, values)
    return _update(connection, _CHANGE_AND_REPLAN, job, {**values, "planned_until": planned_until})


def remove(connection: Connection, *, job: Job) -> bool:
    """Mark a job as deleted, unless it was changed since. Its runs and their history stay."""
    return _update(connection, _REMOVE, job, {})


def _update(connection: Connection, statement: Update, job: Job, values: Mapping[str, Any]) -> bool:
    """Update the job if it still has the version that was read; then wake the leader, which caches jobs, and the
    workers, which register what they can execute of them."""
    if execute(connection, statement, {**values, **_as_read(job)}).rowcount != 1:
        return False
    channels.notify(connection, *_CONCERNED)
    return True


def _as_read(job: Job) -> dict[str, Any]:
    return {"of_id": job.id, "of_version": job.version, "of_updated_at": job.updated_at}


_UNLOCKED = (
    select(job_definitions.c.id)
    .where(job_definitions.c.id == bindparam("of_id", type_=BigInteger()))
    .with_for_update(key_share=True, skip_locked=True)
    .correlate(None)
)
_ADVANCE = (
    update(job_definitions)
    .where(
        *_AS_READ,
        job_definitions.c.id.in_(_UNLOCKED),
        job_definitions.c.planned_until == bindparam("planned_before", type_=UtcTime()),
        TERM_IS_CURRENT,
    )
    .values(**parameters_for(job_definitions, "planned_until"))
)


def advance_planning(
    connection: Connection, *, term: Term, job: Job, planned_until: datetime
) -> bool:
    """Record how far a job's ticks are planned, in the transaction that creates their runs. False if another
    planning of the same stretch was first, the term is over, or another transaction holds the job: a handler that
    defines it may, for as long as its transaction takes."""
    values = {"planned_before": job.planned_until, "planned_until": planned_until}
    parameters = {**_as_read(job), **values, **term.parameters}
    return execute(connection, _ADVANCE, parameters).rowcount == 1


_EDITION = (job_definitions.c.version, job_definitions.c.updated_at)
_HEADS = select(job_definitions.c.id, *_EDITION, job_definitions.c.planned_until)
_HEADS_BY_ID = _HEADS.where(in_list(job_definitions.c.id, "ids"))
_HEADS_SCHEDULED = _HEADS.where(
    job_definitions.c.deleted_at.is_(None),
    job_definitions.c.enabled.is_(True),
    job_definitions.c.schedule.is_not(None),
)
_BY_ID = select(job_definitions).where(in_list(job_definitions.c.id, "ids"))


def enabled_kinds(connection: Connection) -> list[str]:
    """The kinds of the enabled jobs."""
    return list(execute(connection, _ENABLED_KINDS).scalars())


def get(connection: Connection, job_id: int) -> Job | None:
    """A job by its id, removed ones too: their runs still need it."""
    row = execute(connection, _BY_ID, {"ids": [job_id]}).mapping_or_none()
    return None if row is None else job_from(row)


def get_many(
    connection: Connection, job_ids: Collection[int], *, known: Mapping[int, Job]
) -> dict[int, Job]:
    """Jobs by id, removed ones too. A job that `known` has in its current version is not read again."""
    if not job_ids:
        return {}
    heads = execute(connection, _HEADS_BY_ID, {"ids": sorted(job_ids)}).all()
    return {job.id: job for job in _read_changed(connection, heads, known)}


def _read_changed(
    connection: Connection, heads: Sequence[Sequence[Any]], known: Mapping[int, Job]
) -> list[Job]:
    """The jobs with these `heads`, read in full only if new or changed: a job is queried many times between
    two changes, and is a wide row with several JSON documents in it."""
    stale = [i for i, *edition, _ in heads if i not in known or known[i].edition != (*edition,)]
    fresh: dict[int, Job] = {}
    if stale:
        rows = execute(connection, _BY_ID, {"ids": stale}).mappings()
        fresh = {row["id"]: job_from(row) for row in rows}
    return [
        job if job.planned_until == planned_until else replace(job, planned_until=planned_until)
        for job_id, *_, planned_until in heads
        for job in (fresh.get(job_id) or known[job_id],)
    ]


class NamedJob(NamedTuple):
    """A job in its current version, and the database's time at which it was read."""

    job: Job
    now: datetime


_NAMED = job_definitions.c.name == bindparam("name", type_=Text())
_PRESENT = select(job_definitions).where(job_definitions.c.deleted_at.is_(None))
_ENABLED_KINDS = (
    _PRESENT.with_only_columns(job_definitions.c.handler)
    .where(job_definitions.c.enabled)
    .distinct()
    .order_by(job_definitions.c.handler)
)
_BY_NAME = _PRESENT.where(_NAMED)
_BY_NAMES = _PRESENT.where(in_list(job_definitions.c.name, "names"))
_HEAD_BY_NAME = _BY_NAME.with_only_columns(job_definitions.c.id, *_EDITION, db_now())
_BY_NAME_NOW = _BY_NAME.add_columns(db_now().label("now"))
_ALL = _PRESENT.order_by(job_definitions.c.name)
_ALL_HEADS = _ALL.with_only_columns(*_HEADS.selected_columns)
_HEADS_OF_KIND = _ALL_HEADS.where(job_definitions.c.handler == bindparam("kind", type_=Text()))
_ALL_NAMES = _ALL.with_only_columns(job_definitions.c.name)
_NAMES_BY_ID = _PRESENT.with_only_columns(job_definitions.c.id, job_definitions.c.name)
_BY_HANDLER = _ALL.where(
    (job_definitions.c.handler == bindparam("handler", type_=Text()))
    | in_list(job_definitions.c.name, "names")
)
_HANDLED = _ALL.where(
    in_list(job_definitions.c.id, "ids"),
    job_definitions.c.enabled.is_(True),
    job_definitions.c.handler != COMMAND_KIND,
)
_BY_EVENT = _PRESENT.where(in_list(job_definitions.c.on_event, "event_types"))


def look_up(connection: Connection, name: str, *, known: Mapping[str, Job]) -> NamedJob | None:
    """A job by name and the database's time; one query, unless the job has changed since `known`."""
    cached = known.get(name)
    if cached is not None:
        head = execute(connection, _HEAD_BY_NAME, {"name": name}).one_or_none()
        if head is None:
            return None
        job_id, *edition, now = head
        if (cached.id, cached.edition) == (job_id, (*edition,)):
            return NamedJob(cached, now)
    row = execute(connection, _BY_NAME_NOW, {"name": name}).mapping_or_none()
    if row is None:
        return None
    now = row.pop("now")
    return NamedJob(job_from(row), now)


def get_by_name(connection: Connection, name: str) -> Job | None:
    row = execute(connection, _BY_NAME, {"name": name}).mapping_or_none()
    return None if row is None else job_from(row)


def find_by_name(connection: Connection, names: Collection[str]) -> dict[str, Job]:
    """Those of the named jobs that exist."""
    rows = execute(connection, _BY_NAMES, {"names": list(names)}).mappings()
    return {row["name"]: job_from(row) for row in rows}


def find(connection: Connection, *, known: Mapping[int, Job] = NONE_KNOWN) -> list[Job]:
    """Every job that has not been removed, by name. A job that `known` has in its current version is not read again."""
    if not known:
        return [job_from(row) for row in execute(connection, _ALL).mappings()]
    heads = execute(connection, _ALL_HEADS).all()
    # One that was changed may have been removed before it was read.
    return [job for job in _read_changed(connection, heads, known) if job.deleted_at is None]


def find_of_kind(connection: Connection, kind: str, *, known: Mapping[int, Job]) -> list[Job]:
    """Every job of a kind that was not removed. A job that `known` has in its current version is not read again."""
    heads = execute(connection, _HEADS_OF_KIND, {"kind": kind}).all()
    return _read_changed(connection, heads, known)


def find_by_handler(connection: Connection, handler: str, names: Collection[str]) -> list[Job]:
    """Every job of a handler, and those of these names, by name. The others are not read."""
    values = {"handler": handler, "names": list(names)}
    return [job_from(row) for row in execute(connection, _BY_HANDLER, values).mappings()]


def find_handled(connection: Connection, job_ids: Collection[int]) -> list[Job]:
    """Those of the jobs that are enabled and no commands, by name: they need a handler that not every worker has."""
    if not job_ids:
        return []
    rows = execute(connection, _HANDLED, {"ids": sorted(job_ids)}).mappings()
    return [job_from(row) for row in rows]


def names(connection: Connection) -> list[str]:
    """Of every job that has not been removed, in their order."""
    return [row[0] for row in execute(connection, _ALL_NAMES).all()]


def names_by_id(connection: Connection) -> dict[int, str]:
    """Of every job that has not been removed."""
    return dict(execute(connection, _NAMES_BY_ID).all())


def find_scheduled(
    connection: Connection,
    *,
    known: Mapping[int, Job] = NONE_KNOWN,
    on_unreadable: Callable[[Job, UnreadableSchedule], None] = lambda _job, _schedule: None,
) -> list[Job]:
    """Every enabled job with a schedule. A job that `known` has in its current version is not read again. A job
    whose schedule this machine cannot read is passed to `on_unreadable` and left out."""
    heads = execute(connection, _HEADS_SCHEDULED).all()
    found: list[Job] = []
    for job in _read_changed(connection, heads, known):
        if isinstance(job.spec.schedule, UnreadableSchedule):
            on_unreadable(job, job.spec.schedule)
        else:
            found.append(job)
    return found


def find_by_event(connection: Connection, event_types: Sequence[str]) -> list[Job]:
    """Every job that subscribes to one of these event types, disabled ones too."""
    rows = execute(connection, _BY_EVENT, {"event_types": event_types}).mappings()
    return [job_from(row) for row in rows]
