"""Triggers that keep `waiting_items` complete, also when another program writes to `items`.

An item that is not processed has a row in `waiting_items`, also one that another program or a person has put into
`items`. On SQLite its times get the form in which ours are compared; what is not a time is refused.
"""

from typing import Any

from sqlalchemy import DDL, Connection, text

NAMES = {
    "sqlite": (
        "items_waiting_insert",
        "items_waiting_update",
        "items_times_insert",
        "items_times_update",
    ),
    "postgresql": ("items_waiting_insert", "items_waiting_update"),
}

_TIMES = ("published_at", "created_at", "last_checked_at")


def _in_form(value: str) -> str:
    return f"{value} LIKE '____-__-__T__:__:__.______Z'"


_GO_TIME = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]* [+-][0-9][0-9][0-9][0-9]*"


def _readable(value: str) -> str:
    """SQLite: a time as Go writes it (`2024-05-01 09:00:00.5 +0900 JST`) in a form that SQLite reads."""
    blank = f"instr(substr({value}, 20), ' ')"
    fraction = f"substr(substr({value}, 20, {blank} - 1), 1, 4)"
    zone = f"substr({value}, 20 + {blank}, 3) || ':' || substr({value}, 23 + {blank}, 2)"
    in_form = f"substr({value}, 1, 19) || {fraction} || {zone}"
    return f"CASE WHEN {value} GLOB '{_GO_TIME}' THEN {in_form} ELSE {value} END"


def time_text(value: str) -> str:
    """SQLite: a time in the form in which it is stored; NULL if it is none."""
    seconds = f"CASE typeof({value}) WHEN 'integer' THEN 'unixepoch' ELSE '+0 seconds' END"
    written = f"strftime('%Y-%m-%dT%H:%M:%f', {_readable(value)}, {seconds}) || '000Z'"
    return f"CASE WHEN {_in_form(value)} THEN {value} ELSE {written} END"


def _order_at(row: str, form: Any = str) -> str:
    published, checked = form(f"{row}.published_at"), form(f"{row}.last_checked_at")
    return f"CASE WHEN {row}.status = 2 THEN {published} ELSE {checked} END"


_ADD = """
INSERT INTO waiting_items (item_id, feed_id, state, is_pending, order_at)
SELECT new.id, (SELECT feed_id FROM item_details WHERE item_id = new.id), 'ready', new.status = 2, {order_at}
WHERE new.status <> 3 AND NOT EXISTS (SELECT 1 FROM waiting_items WHERE item_id = new.id)
"""
_ADD_NEW = """
INSERT INTO waiting_items (item_id, state, is_pending, order_at)
VALUES (new.id, 'ready', new.status = 2, {order_at}) ON CONFLICT DO NOTHING
"""
_REMOVE = "DELETE FROM waiting_items WHERE item_id = new.id AND new.status = 3"
_REORDER = """
UPDATE waiting_items
SET is_pending = (new.status = 2), order_at = {order_at},
    state = CASE WHEN state = 'approval' THEN 'ready' ELSE state END
WHERE item_id = new.id AND is_pending <> (new.status = 2)
"""
_ORDER_ON_SQLITE = _order_at("new", time_text)
_NOT_IN_FORM = " OR ".join(f"NOT ({_in_form(f'new.{name}')})" for name in _TIMES)
_REFUSE = "SELECT RAISE(ABORT, 'a time of the item is not a date and time') WHERE " + " OR ".join(
    f"{time_text(f'new.{name}')} IS NULL" for name in _TIMES
)
_SET_TIMES = (
    "UPDATE items SET "
    + ", ".join(f"{name} = {time_text(f'new.{name}')}" for name in _TIMES)
    + " WHERE id = new.id"
)
_ON_SQLITE = (
    f"CREATE TRIGGER items_waiting_insert AFTER INSERT ON items WHEN new.status <> 3 BEGIN"
    f" {_ADD_NEW.format(order_at=_ORDER_ON_SQLITE)}; END",
    f"CREATE TRIGGER items_waiting_update AFTER UPDATE OF status ON items"
    f" WHEN new.status <> old.status BEGIN {_REMOVE};"
    f" {_REORDER.format(order_at=_ORDER_ON_SQLITE)};"
    f" {_ADD.format(order_at=_ORDER_ON_SQLITE)}; END",
    f"CREATE TRIGGER items_times_insert AFTER INSERT ON items WHEN {_NOT_IN_FORM}"
    f" BEGIN {_REFUSE}; {_SET_TIMES}; END",
    f"CREATE TRIGGER items_times_update AFTER UPDATE OF {', '.join(_TIMES)} ON items"
    f" WHEN {_NOT_IN_FORM} BEGIN {_REFUSE}; {_SET_TIMES}; END",
)
_ORDER_ON_POSTGRESQL = _order_at("new")
_ON_POSTGRESQL = (
    f"""
    CREATE OR REPLACE FUNCTION items_waiting_insert() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO waiting_items (item_id, state, is_pending, order_at)
      SELECT item.id, 'ready', item.status = 2, {_order_at("item")}
      FROM added AS item WHERE item.status <> 3
      ON CONFLICT DO NOTHING;
      RETURN NULL;
    END $$
    """,
    f"""
    CREATE OR REPLACE FUNCTION items_waiting_update() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      {_REMOVE};
      {_REORDER.format(order_at=_ORDER_ON_POSTGRESQL)};
      {_ADD.format(order_at=_ORDER_ON_POSTGRESQL)};
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER items_waiting_insert AFTER INSERT ON items REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION items_waiting_insert()
    """,
    """
    CREATE TRIGGER items_waiting_update AFTER UPDATE OF status ON items
    FOR EACH ROW WHEN (new.status <> old.status) EXECUTE FUNCTION items_waiting_update()
    """,
)


def create(connection: Connection) -> None:
    """Create the triggers. Existing rows are left as they are."""
    is_sqlite = connection.dialect.name == "sqlite"
    for statement in _ON_SQLITE if is_sqlite else _ON_POSTGRESQL:
        connection.execute(DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]


def add_missing(connection: Connection) -> None:
    """Add the rows of `waiting_items` that the triggers would have added."""
    every = _ADD.format(order_at=_order_at("new")).replace(
        "WHERE new", "FROM items AS new WHERE new", 1
    )
    connection.execute(text(every))
