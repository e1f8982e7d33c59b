"""Transitions since a position: each of them exactly once, also for another process that continues from there.

SQLite commits one transaction after the other, and a move takes its time inside it: the order of (at, run, version) is
the order of commits, and a position is the last row that was read.

PostgreSQL commits in any order: a row with an older time may become visible later. There a position is a snapshot of
the server (`pg_current_snapshot`). What is new are the rows whose transaction that snapshot does not show, at any time.
So that not the whole table is searched for them, a position has the time that none of them is older than.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    column,
    select,
    text,
    tuple_,
)

from tsuzuki.model.run import Transition
from tsuzuki.store import pruning
from tsuzuki.store.rows import TRANSITION_COLUMNS, transition_from
from tsuzuki.store.schema.tables import job_definitions, job_run_transitions, job_runs
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

MARGIN = timedelta(seconds=2)
"""Between the time of a statement and the lock by which it is seen to write."""

TRANSACTION_MAX = 2**63
CLOCK_TOLERANCE = timedelta(seconds=1)
"""A row that is further ahead of the clock shows that the clock was set back."""


class Change(NamedTuple):
    """A transition, and the job whose run it is."""

    transition: Transition
    job_name: str


class Key(NamedTuple):
    """The place of a transition in the order in which changes are read."""

    at: datetime
    run_id: int
    version: int


FIRST = Key(datetime(1970, 1, 1, tzinfo=UTC), 0, 0)


@dataclass(frozen=True, kw_only=True)
class Position:
    """What has been read. On SQLite: everything up to `key`. On PostgreSQL: everything that `snapshot` shows, and of
    what `page` shows the rows up to `key`; no other row is older than `oldest`."""

    oldest: datetime
    key: Key
    snapshot: str = ""
    page: str = ""

    def __str__(self) -> str:
        if not self.snapshot:
            return ".".join(["s", *_key_texts(self.key)])
        parts = ["p", self.snapshot, str(_microseconds(self.oldest))]
        return ".".join([*parts, self.page, *_key_texts(self.key)] if self.page else parts)


_SNAPSHOT = r"(\d{1,20}:\d{1,20}:[\d,]{0,20000})"
_NUMBER = r"(\d{1,18})"
_KEY = rf"{_NUMBER}\.{_NUMBER}\.(\d{{1,9}})"
_SQLITE = re.compile(rf"s\.{_KEY}", re.ASCII)
_POSTGRESQL = re.compile(rf"p\.{_SNAPSHOT}\.{_NUMBER}(?:\.{_SNAPSHOT}\.{_KEY})?", re.ASCII)


def parse(written: str) -> Position | None:
    """The position that a text stands for; None if it is none."""
    try:
        if found := _SQLITE.fullmatch(written):
            key = _key(found.groups())
            return Position(oldest=key.at, key=key)
        if found := _POSTGRESQL.fullmatch(written):
            snapshot, oldest, page, *rest = found.groups()
            if _is_snapshot(snapshot) and (not page or _is_snapshot(page)):
                key = _key(rest) if page else FIRST
                return Position(oldest=_moment(oldest), key=key, snapshot=snapshot, page=page or "")
    except (OverflowError, ValueError):
        return None
    return None


def _is_snapshot(written: str) -> bool:
    """What PostgreSQL takes for one: transactions in order, between the first and the last."""
    first, last, between = written.split(":")
    open_ones = [int(number) for number in between.split(",")] if between else []
    in_order = [int(first), *open_ones, int(last)]
    return (
        0 < int(first) <= int(last) < TRANSACTION_MAX
        and in_order == sorted(in_order)
        and len(set(open_ones)) == len(open_ones)
        and (not open_ones or open_ones[-1] < int(last))
    )


def _key(parts: Sequence[str]) -> Key:
    at, run_id, version = parts
    return Key(_moment(at), int(run_id), int(version))


def _key_texts(key: Key) -> list[str]:
    return [str(_microseconds(key.at)), str(key.run_id), str(key.version)]


_MICROSECOND = timedelta(microseconds=1)


def _microseconds(moment: datetime) -> int:
    return max((moment - FIRST.at) // _MICROSECOND, 0)


def _moment(microseconds: str) -> datetime:
    return FIRST.at + int(microseconds) * _MICROSECOND


# --- now ------------------------------------------------------------------------------------------

_MOVES = job_run_transitions.c
_ORDER = (_MOVES.at, _MOVES.run_id, _MOVES.version)
_CLOCK = select(db_now().label("now"))
_LAST = select(*_ORDER).order_by(*(part.desc() for part in _ORDER)).limit(1)
# A statement has the lock of the table from before it waits for rows until its transaction ends. The start of a
# transaction is hidden if it is of another database user.
_OLDEST_WRITER = text("""
    SELECT tsuzuki_now(-CAST(coalesce(max(extract(epoch FROM statement_timestamp() - coalesce(
        a.xact_start, statement_timestamp() - INTERVAL '10 minutes'))), 0) AS double precision))
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.mode = 'RowExclusiveLock' AND l.database = (
        SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.relation IN (
        CAST('job_runs' AS regclass), CAST('job_run_transitions' AS regclass))
""").columns(column("oldest", UtcTime()))
_CURRENT = text("SELECT CAST(pg_current_snapshot() AS text)").columns(column("snapshot", Text()))


def now(connection: Connection) -> Position:
    """The position behind everything that is committed now."""
    if is_sqlite(connection.dialect):
        row = execute(connection, _LAST).one_or_none()
        key = FIRST if row is None else Key(*row)
        pruned = pruning.pruned_until(connection)
        if pruned is not None and pruned > key.at:
            key = Key(pruned, 0, 0)
        # A clock that was set back: what comes next is before the last row.
        clock = execute(connection, _CLOCK).scalar_one()
        key = min(key, Key(clock + CLOCK_TOLERANCE, 0, 0))
        return Position(oldest=key.at, key=key)
    # In this order: what the snapshot does not show was seen to write before it, or started after.
    oldest = execute(connection, _OLDEST_WRITER).scalar_one()
    snapshot = execute(connection, _CURRENT).scalar_one()
    return Position(oldest=oldest - MARGIN, key=FIRST, snapshot=snapshot)


# --- reading --------------------------------------------------------------------------------------

_SELECT = (
    select(*(_MOVES[name] for name in TRANSITION_COLUMNS), job_definitions.c.name.label("job_name"))
    .join_from(job_run_transitions, job_runs, job_runs.c.id == _MOVES.run_id)
    .join(job_definitions, job_definitions.c.id == job_runs.c.job_definition_id)
    .order_by(*_ORDER)
    .limit(bindparam("limit", type_=Integer()))
)


def _given(prefix: str) -> Any:
    return tuple_(
        bindparam(f"{prefix}_at", type_=UtcTime()),
        bindparam(f"{prefix}_run", type_=BigInteger()),
        bindparam(f"{prefix}_version", type_=Integer()),
    )


_AFTER_KEY = tuple_(*_ORDER) > _given("after")
_UP_TO_KEY = tuple_(*_ORDER) <= _given("last")
_SQLITE_BETWEEN = _SELECT.where(_AFTER_KEY, _UP_TO_KEY)


@lru_cache
def _between_snapshots() -> Select[Any]:
    # The transaction of a row has 32 of its 64 bits there; the others are those of the last one that fits.
    newest = "(SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint))"
    stored = "CAST(CAST(job_run_transitions.xmin AS text) AS bigint)"
    whole = f"CAST(CAST({newest} - (({newest} - {stored}) & 4294967295) AS text) AS xid8)"
    shown = "pg_visible_in_snapshot({}, CAST(:{} AS pg_snapshot))"
    return _SELECT.where(
        _MOVES.at >= bindparam("oldest", type_=UtcTime()),
        text(f"NOT {shown.format(whole, 'known')}").bindparams(bindparam("known", type_=Text())),
        text(shown.format(whole, "until")).bindparams(bindparam("until", type_=Text())),
        _AFTER_KEY,
    )


class Page(NamedTuple):
    """Some changes, and the position behind them."""

    changes: list[Change]
    position: Position
    more: bool


def between(connection: Connection, known: Position, until: Position, *, limit: int) -> Page:
    """The first changes after `known`, up to `until`, which `now` answered at some time."""
    after = known.key
    if until.snapshot:
        if known.page and known.page != until.snapshot:
            # The rest of the page that was read half goes first.
            until = Position(oldest=known.oldest, key=FIRST, snapshot=known.page)
            page = between(connection, known, until, limit=limit)
            return page._replace(more=True)
        values: dict[str, Any] = {"known": known.snapshot, "until": until.snapshot}
        statement, values["oldest"] = _between_snapshots(), min(known.oldest, until.oldest)
    else:
        statement, values = _SQLITE_BETWEEN, _key_values("last", until.key)
    values |= {**_key_values("after", after), "limit": limit}
    rows = execute(connection, statement, values).mappings()
    changes = [_change(row) for row in rows]
    if len(changes) < limit:
        return Page(changes, until, more=False)
    last = changes[-1].transition
    key = Key(last.at, last.run_id, last.version)
    if until.snapshot:
        position = Position(
            oldest=known.oldest, key=key, snapshot=known.snapshot, page=until.snapshot
        )
    else:
        position = Position(oldest=key.at, key=key)
    return Page(changes, position, more=True)


def _key_values(prefix: str, key: Key) -> dict[str, Any]:
    return {f"{prefix}_at": key.at, f"{prefix}_run": key.run_id, f"{prefix}_version": key.version}


def _change(row: dict[str, Any]) -> Change:
    job_name = row.pop("job_name")
    return Change(transition_from(row), job_name)


def is_elsewhere(known: Position, current: Position) -> bool:
    """Whether a position is of another database, or of a clock that was set back: it cannot be continued from."""
    if bool(known.snapshot) != bool(current.snapshot):
        return True
    if current.snapshot:
        return max(_last(known.snapshot), _last(known.page)) > _last(current.snapshot)
    return known.key > current.key


def is_pruned(connection: Connection, known: Position) -> bool:
    """Whether something after it may have been deleted."""
    pruned = pruning.pruned_until(connection)
    return pruned is not None and known.oldest < pruned


def _last(snapshot: str) -> int:
    return int(snapshot.split(":")[1]) if snapshot else 0
