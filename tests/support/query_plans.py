"""The query plan of a statement that the store has just sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, event


@dataclass(frozen=True)
class Sent:
    """A statement as it reached the driver."""

    statement: str
    parameters: Any


@contextmanager
def last_sent(connection: Connection) -> Iterator[list[Sent]]:
    """Record what a connection sends meanwhile."""
    sent: list[Sent] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        sent.append(Sent(statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(connection, "before_cursor_execute", note)


def plan_of(connection: Connection, sent: Sent) -> str:
    """The lines of the plan, each with its end."""
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    rows = connection.exec_driver_sql(f"{explain} {sent.statement}", sent.parameters)
    return "".join(f"{row[-1]}\n" for row in rows)


def ways_to(connection: Connection, table: str, sent: Sent) -> list[str]:
    """The access paths to `table` in the plan."""
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sent.statement}", sent.parameters)
        details = [row.detail for row in rows]
        return [detail for detail in details if detail.split()[1:2] == [table]]
    explained = connection.exec_driver_sql(
        f"EXPLAIN (FORMAT JSON) {sent.statement}", sent.parameters
    )
    return list(_scans(explained.scalar_one()[0]["Plan"], table))


def generic_ways_to(connection: Connection, table: str, sent: Sent) -> list[str]:
    """Access paths in the generic plan that PostgreSQL caches after some executions."""
    cursor: Any = connection.connection.cursor()
    cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    cursor.execute(sent.statement, sent.parameters, prepare=True)
    cursor.execute(
        "SELECT name, cardinality(parameter_types) FROM pg_prepared_statements"
        " WHERE statement LIKE 'UPDATE tsuzuki_job_runs%' ORDER BY prepare_time DESC LIMIT 1"
    )
    name, count = cursor.fetchone()
    nothing = ", ".join(["NULL"] * count)
    cursor.execute(f'EXPLAIN (FORMAT JSON) EXECUTE "{name}" ({nothing})')
    return list(_scans(cursor.fetchone()[0][0]["Plan"], table))


def _indexes(node: dict[str, Any]) -> list[str]:
    """The indexes of a scan: its own, or those of the bitmap scans below it."""
    below = node.get("Plans", []) if "Bitmap" in node["Node Type"] else []
    own = [node["Index Name"]] if "Index Name" in node else []
    return own + [name for inner in below for name in _indexes(inner)]


def _scans(node: dict[str, Any], table: str) -> Iterator[str]:
    if node.get("Relation Name") == table and node["Node Type"] != "ModifyTable":
        yield f"{node['Node Type']} using {', '.join(_indexes(node)) or None}"
    for inner in node.get("Plans", []):
        yield from _scans(inner, table)
