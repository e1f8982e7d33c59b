"""Transitions since a position: each of them exactly once, also for another process that continues from there.

SQLite commits one transaction after the other, and a trigger numbers the rows (`seq`): a position is the last row that
was read. Its time would not do, because a clock may be set back.

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
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.types import UtcTime

MARGIN = timedelta(seconds=2)
"""Between the time of a statement and the lock by which it is seen to write."""

TRANSACTION_MAX = 2**63


class RunChange(NamedTuple):
    """A transition, and the job whose run it is."""

    transition: Transition
    job_name: str


class Key(NamedTuple):
    """The place of a transition in the order in which changes are read."""

    at: datetime
    run_id: int
    version: int


FIRST = Key(datetime(1970, 1, 1, tzinfo=UTC), 0, 0)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Position:
    """What has been read. On SQLite: everything up to `seq`, which is the number of the row `key`, unless that was
    deleted. On PostgreSQL: everything that `snapshot` shows, and of what `page` shows the rows up to `key`; no other
    row is older than `oldest`."""

    oldest: datetime
    key: Key
    seq: int = 0
    snapshot: str = ""
    page: str = ""

    def __str__(self) -> str:
        if not self.snapshot:
            return ".".join(["s", str(self.seq), *_key_texts(self.key)])
        parts = ["p", self.snapshot, str(_microseconds(self.oldest))]
        return ".".join([*parts, self.page, *_key_texts(self.key)] if self.page else parts)


_SNAPSHOT = r"(\d{1,20}:\d{1,20}:[\d,]{0,20000})"
_NUMBER = r"(\d{1,18})"
_KEY = rf"{_NUMBER}\.{_NUMBER}\.(\d{{1,9}})"
_SQLITE = re.compile(rf"s\.{_NUMBER}\.{_KEY}", re.ASCII)
_POSTGRESQL = re.compile(rf"p\.{_SNAPSHOT}\.{_NUMBER}(?:\.{_SNAPSHOT}\.{_KEY})?", re.ASCII)


def parse(written: str) -> Position | None:
    """The position that a text stands for; None if it is none."""
    try:
        if found := _SQLITE.fullmatch(written):
            seq, *rest = found.groups()
            return _after(int(seq), _key(rest))
        if found := _POSTGRESQL.fullmatch(written):
            snapshot, oldest, page, *rest = found.groups()
            if _is_snapshot(snapshot) and (not page or _is_snapshot(page)):
                key = _key(rest) if page else FIRST
                return Position(oldest=_moment(oldest), key=key, snapshot=snapshot, page=page or "")
    except (OverflowError, ValueError):
        return None
    return None


def _after(seq: int, key: Key) -> Position:
    return Position(oldest=key.at, key=key, seq=seq)


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
_LAST = select(_MOVES.seq, *_ORDER).order_by(_MOVES.seq.desc()).limit(1)
# A statement has the lock of the table from before it waits for rows until its transaction ends. The start of a
# transaction is hidden if it is of another database user.
_OLDEST_WRITER = text("""
    SELECT tsuzuki_now(-CAST(coalesce(max(extract(epoch FROM statement_timestamp() - coalesce(
        a.xact_start, statement_timestamp() - INTERVAL '10 minutes'))), 0) AS double precision))
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.mode = 'RowExclusiveLock' AND l.database = (
        SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.relation IN (
        CAST('tsuzuki_job_runs' AS regclass), CAST('tsuzuki_job_run_transitions' AS regclass))
""").columns(column("oldest", UtcTime()))
_CURRENT = text("SELECT CAST(pg_current_snapshot() AS text)").columns(column("snapshot", Text()))


def now(connection: Connection) -> Position:
    """The position behind everything that is committed now."""
    if is_sqlite(connection.dialect):
        row = execute(connection, _LAST).one_or_none()
        last = _after(0, FIRST) if row is None else _after(row[0], Key(*row[1:]))
        pruned = pruning.pruned(connection).seq
        return last if last.seq >= pruned else _after(pruned, FIRST)
    # In this order: what the snapshot does not show was seen to write before it, or started after.
    oldest = oldest_write(connection)
    snapshot = execute(connection, _CURRENT).scalar_one()
    return Position(oldest=oldest, key=FIRST, snapshot=snapshot)


def oldest_write(connection: Connection) -> datetime:
    """No transaction that is open now stores a move of an earlier time than this. On SQLite no other is open when
    one is written."""
    if is_sqlite(connection.dialect):
        return LAST_MOMENT
    oldest: datetime = execute(connection, _OLDEST_WRITER).scalar_one()
    return oldest - MARGIN


# --- reading --------------------------------------------------------------------------------------

_SELECT = (
    select(*(_MOVES[name] for name in TRANSITION_COLUMNS), job_definitions.c.name.label("job_name"))
    .join_from(job_run_transitions, job_runs, job_runs.c.id == _MOVES.run_id)
    .join(job_definitions, job_definitions.c.id == job_runs.c.job_definition_id)
    .limit(bindparam("limit", type_=Integer()))
)


_AFTER_KEY = tuple_(*_ORDER) > tuple_(
    bindparam("after_at", type_=UtcTime()),
    bindparam("after_run", type_=BigInteger()),
    bindparam("after_version", type_=Integer()),
)
_SQLITE_BETWEEN = (
    _SELECT.add_columns(_MOVES.seq)
    .where(
        _MOVES.seq > bindparam("after", type_=BigInteger()),
        _MOVES.seq <= bindparam("last", type_=BigInteger()),
    )
    .order_by(_MOVES.seq)
)


@lru_cache
def _between_snapshots() -> Select[Any]:
    # The transaction of a row has 32 of its 64 bits there; the others are those of the last one that fits.
    newest = "(SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint))"
    stored = "CAST(CAST(tsuzuki_job_run_transitions.xmin AS text) AS bigint)"
    whole = f"CAST(CAST({newest} - (({newest} - {stored}) & 4294967295) AS text) AS xid8)"
    shown = "pg_visible_in_snapshot({}, CAST(:{} AS pg_snapshot))"
    return _SELECT.order_by(*_ORDER).where(
        _MOVES.at >= bindparam("oldest", type_=UtcTime()),
        text(f"NOT {shown.format(whole, 'known')}").bindparams(bindparam("known", type_=Text())),
        text(shown.format(whole, "until")).bindparams(bindparam("until", type_=Text())),
        _AFTER_KEY,
    )


class ChangesPage(NamedTuple):
    """Some changes, and the position behind them."""

    changes: list[RunChange]
    position: Position
    more: bool


def between(connection: Connection, known: Position, until: Position, *, limit: int) -> ChangesPage:
    """The first changes after `known`, up to `until`, which `now` answered at some time."""
    if not until.snapshot:
        return _between_numbers(connection, known, until, limit)
    if known.page and known.page != until.snapshot:
        # The rest of the page that was read half goes first.
        until = Position(oldest=known.oldest, key=FIRST, snapshot=known.page)
        page = between(connection, known, until, limit=limit)
        return page._replace(more=True)
    at, run_id, version = known.key
    values = {
        "known": known.snapshot,
        "until": until.snapshot,
        "oldest": min(known.oldest, until.oldest),
        "after_at": at,
        "after_run": run_id,
        "after_version": version,
        "limit": limit,
    }
    changes = [_change(row) for row in execute(connection, _between_snapshots(), values).mappings()]
    if len(changes) < limit:
        return ChangesPage(changes, until, more=False)
    position = Position(
        oldest=known.oldest,
        key=_key_of(changes[-1]),
        snapshot=known.snapshot,
        page=until.snapshot,
    )
    return ChangesPage(changes, position, more=True)


def _between_numbers(
    connection: Connection, known: Position, until: Position, limit: int
) -> ChangesPage:
    values = {"after": known.seq, "last": until.seq, "limit": limit}
    rows = execute(connection, _SQLITE_BETWEEN, values).mappings()
    numbers = [row.pop("seq") for row in rows]
    changes = [_change(row) for row in rows]
    if len(changes) < limit:
        return ChangesPage(changes, until, more=False)
    return ChangesPage(changes, _after(numbers[-1], _key_of(changes[-1])), more=True)


def _change(row: dict[str, Any]) -> RunChange:
    job_name = row.pop("job_name")
    return RunChange(transition_from(row), job_name)


def _key_of(change: RunChange) -> Key:
    return Key(change.transition.at, change.transition.run_id, change.transition.version)


def is_elsewhere(known: Position, current: Position) -> bool:
    """Whether a position is of another database: it cannot be continued from."""
    if bool(known.snapshot) != bool(current.snapshot):
        return True
    if current.snapshot:
        return max(_last(known.snapshot), _last(known.page)) > _last(current.snapshot)
    return known.seq > current.seq


_NUMBERED = select(*_ORDER).where(_MOVES.seq == bindparam("seq", type_=BigInteger()))


def is_lost(connection: Connection, known: Position) -> bool:
    """Whether something after it may have been deleted; on SQLite also whether it is of another file, such as the one
    before a backup was restored."""
    pruned = pruning.pruned(connection)
    if known.snapshot:
        return pruned.until is not None and known.oldest < pruned.until
    if known.seq <= pruned.seq:
        return known.seq < pruned.seq
    row = execute(connection, _NUMBERED, {"seq": known.seq}).one_or_none()
    return row is None or Key(*row) != known.key


def _last(snapshot: str) -> int:
    return int(snapshot.split(":")[1]) if snapshot else 0
