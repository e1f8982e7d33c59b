"""What is sent to a database while something is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import event

from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import AutocommitConnection


@contextmanager
def recorded(database: Database) -> Iterator[list[str]]:
    """Every statement that reaches the database meanwhile, but for the frame of transactions."""
    sent: list[str] = []
    send = AutocommitConnection.send

    def note(statement: str) -> None:
        if not statement.startswith(("BEGIN", "COMMIT")):
            sent.append(statement)

    def note_on_connection(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        note(statement)

    def note_on_line(line: AutocommitConnection, sql: str, values: Any = ()) -> list[Any]:
        note(sql)
        return send(line, sql, values)

    event.listen(database.engine, "before_cursor_execute", note_on_connection)
    try:
        with patch.object(AutocommitConnection, "send", note_on_line):
            yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note_on_connection)


def writes(statements: list[str], table: str) -> list[str]:
    """Those that change a table."""
    return [
        s
        for s in statements
        if s.startswith((f"UPDATE {table} ", f"INSERT INTO {table} ")) or f"UPDATE {table} " in s
    ]
