"""Records the statements that are sent to a database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import event

from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import AutocommitConnection


@contextmanager
def recorded(database: Database) -> Iterator[list[str]]:
    """Every statement sent meanwhile, without BEGIN and COMMIT."""
    sent: list[str] = []
    send = AutocommitConnection.send

    def note(statement: str) -> None:
        if not statement.startswith(("BEGIN", "COMMIT")):
            sent.append(statement)

    def note_on_connection(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        note(statement)

    def note_on_autocommit(
        autocommit: AutocommitConnection, sql: str, values: Any = (), **options: Any
    ) -> tuple[list[Any], int]:
        note(sql)
        return send(autocommit, sql, values, **options)

    event.listen(database.engine, "before_cursor_execute", note_on_connection)
    try:
        with patch.object(AutocommitConnection, "send", note_on_autocommit):
            yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note_on_connection)


def writes(statements: list[str], table: str) -> list[str]:
    """The statements that write to a table."""
    return [
        s
        for s in statements
        if s.startswith((f"UPDATE {table} ", f"INSERT INTO {table} ")) or f"UPDATE {table} " in s
    ]
