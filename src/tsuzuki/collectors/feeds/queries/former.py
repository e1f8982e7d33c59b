"""Taking over `items` with the rows of an earlier program."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Text,
    and_,
    bindparam,
    case,
    column,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    table,
    update,
)

from tsuzuki.collectors.feeds.items.item import ItemReason, ItemStatus
from tsuzuki.collectors.feeds.tables import WaitingState, items, waiting_items
from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.takeover import CODE, FormerTable, FormerTables
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.stored_values import to_text

ROWS_MAX = 5_000
TIMES = ("published_at", "created_at", "last_checked_at")

_GO_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)? ([+-]\d{4})\b")
"""How Go writes a time: `2024-05-01 09:00:00.123456789 +0900 JST m=+0.01`."""

_STATES = {"status": ItemStatus, "reason": ItemReason}
_OTHER_STATES = {
    name: select(func.count(), func.min(items.c.id)).where(
        and_(*(items.c[name] != int(state) for state in states))
    )
    for name, states in _STATES.items()
}
# A reason belongs to a deferred or a processed item. One that became pending may still have its last reason.
_FORGET_REASONS = (
    update(items)
    .where(
        or_(
            items.c.status == int(ItemStatus.UNPROCESSED),
            items.c.status == int(ItemStatus.PENDING),
        ),
        items.c.reason.is_not(None),
    )
    .values(reason=null())
)
# What the triggers would have added.
_IS_PENDING = items.c.status == int(ItemStatus.PENDING)
_ADD_WAITING = insert(waiting_items).from_select(
    ["item_id", "state", "is_pending", "order_at"],
    select(
        items.c.id,
        literal(str(WaitingState.READY)),
        _IS_PENDING,
        case((_IS_PENDING, items.c.published_at), else_=items.c.last_checked_at),
    ).where(items.c.status != int(ItemStatus.PROCESSED)),
    include_defaults=False,
)
# The times as they are written: our own type would not read every form.
_raw = table("items", column("id", BigInteger()), *(column(name, Text()) for name in TIMES))
_RAW_TIMES = (
    select(_raw.c.id, *(_raw.c[name] for name in TIMES))
    .where(_raw.c.id > bindparam("after", type_=BigInteger()))
    .order_by(_raw.c.id)
    .limit(bindparam("most", type_=BigInteger()))
)
_SET_TIMES = (
    update(_raw)
    .where(_raw.c.id == bindparam("that_item", type_=BigInteger()))
    .values({name: bindparam(f"new_{name}", type_=Text()) for name in TIMES})
)


def former_tables() -> FormerTables:
    specified = FormerTable(table=items, columns=tuple(items.c.keys()))
    return FormerTables(tables=(specified,), check=_check, settle=_settle, fill=_fill)


def _check(connection: Connection) -> None:
    for name in _STATES:
        _require_states(connection, name)
    if is_sqlite(connection.dialect):
        for _item_id, _written, _times in _read_times(connection):
            pass


def _settle(connection: Connection, _there: frozenset[str], _now: datetime) -> None:
    if is_sqlite(connection.dialect):
        _write_times(connection)
    execute(connection, _FORGET_REASONS)


def _require_states(connection: Connection, name: str) -> None:
    """Refuse rows with a number that stands for no state: nothing could list or post them."""
    count, first = execute(connection, _OTHER_STATES[name]).one()
    if not count:
        return
    rows = "1 row has" if count == 1 else f"{count} rows have"
    raise SchemaMismatch(
        f"table 'items' cannot be taken over: {rows} a {name!r} other than "
        f"{min(_STATES[name])} to {max(_STATES[name])}, the first is item {first}",
        hint="Correct the rows. Nothing was changed.",
        code=CODE,
    )


def _fill(connection: Connection, _now: datetime) -> None:
    execute(connection, _ADD_WAITING)


def _write_times(connection: Connection) -> None:
    """SQLite compares times as text, so all of them have one form."""
    for item_id, written, times in _read_times(connection):
        if times != written:
            values = {f"new_{name}": time for name, time in zip(TIMES, times, strict=True)}
            execute(connection, _SET_TIMES, {"that_item": item_id, **values})


def _read_times(connection: Connection) -> Iterator[tuple[int, list[Any], list[str]]]:
    """The times of every item, as they are written and in our form."""
    after = 0
    while rows := execute(connection, _RAW_TIMES, {"after": after, "most": ROWS_MAX}).all():
        for item_id, *written in rows:
            yield (
                item_id,
                written,
                [_read(item_id, *pair) for pair in zip(TIMES, written, strict=True)],
            )
        after = rows[-1][0]


def _read(item_id: int, name: str, value: Any) -> str:
    """A time in our form; one without a zone is UTC."""
    try:
        moment = _moment(value)
    except (ValueError, OverflowError) as problem:
        raise SchemaMismatch(
            f"table 'items' cannot be taken over: {name!r} of item {item_id} is {value!r}, not a time",
            hint="Correct the row. Nothing was changed.",
            code=CODE,
        ) from problem
    return to_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _moment(value: Any) -> datetime:
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    written = _GO_TIME.match(str(value))
    if written is None:
        return datetime.fromisoformat(str(value))
    day_and_time, fraction, zone = written.groups()
    return datetime.fromisoformat(f"{day_and_time}{(fraction or '')[:7]}{zone}")
