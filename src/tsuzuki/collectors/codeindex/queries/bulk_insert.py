"""Insert many rows with few statements: one statement per row takes twice the time, and releases the interpreter
lock each time.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

STATEMENT_ROWS = 150
"""With ten columns far below the 32,766 values that a statement may have."""


def insert_rows(
    connection: sqlite3.Connection, into: str, columns: int, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows of as many columns. `into` is the statement up to its VALUES."""
    whole = len(rows) - len(rows) % STATEMENT_ROWS
    values = list(chain.from_iterable(rows[:whole]))
    width = STATEMENT_ROWS * columns
    connection.executemany(
        _statement(into, columns, STATEMENT_ROWS),
        [values[at : at + width] for at in range(0, len(values), width)],
    )
    connection.executemany(_statement(into, columns, 1), rows[whole:])


@cache
def _statement(into: str, columns: int, rows: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{into} VALUES {', '.join([row] * rows)}"
