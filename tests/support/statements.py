"""What is sent to a database while something is done."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from tsuzuki.store.database import Database


@contextmanager
def recorded(database: Database) -> Iterator[list[str]]:
    """Every statement that reaches the database meanwhile, but for the frame of transactions."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if not statement.startswith("BEGIN"):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


def writes(statements: list[str], table: str) -> list[str]:
    """Those that change a table."""
    return [
        s
        for s in statements
        if s.startswith((f"UPDATE {table} ", f"INSERT INTO {table} ")) or f"UPDATE {table} " in s
    ]
