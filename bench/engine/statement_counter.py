"""`tsuzuki` with a counter of the statements that it sends to its database.

    python -m bench.engine.statement_counter FILE up ...

The size of FILE in bytes is the number of statements so far. BEGIN and COMMIT are not counted.
"""

import os
import sys
from typing import Any

from sqlalchemy import Engine, event

from tsuzuki.cli import main
from tsuzuki.store.sql.autocommit import AutocommitConnection

FRAMES = ("BEGIN", "COMMIT", "ROLLBACK")


def count_into(path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    send = AutocommitConnection.send

    def count(statement: str) -> None:
        if not statement.startswith(FRAMES):
            os.write(file, b".")

    @event.listens_for(Engine, "before_cursor_execute")
    def count_on_connection(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        count(statement)

    def count_on_autocommit(
        autocommit: AutocommitConnection, sql: str, values: Any = ()
    ) -> tuple[list[Any], int]:
        count(sql)
        return send(autocommit, sql, values)

    # Patched: an autocommit connection has no event hook, and only a benchmark needs one.
    setattr(AutocommitConnection, "send", count_on_autocommit)  # noqa: B010 -- mypy refuses the assignment


if __name__ == "__main__":
    count_into(sys.argv.pop(1))
    main()
