"""`tsuzuki`, with every statement that it sends to its database counted.

    python -m bench.engine.counted FILE up ...

The size of FILE in bytes is the number of statements so far. What only frames a transaction is not one.
"""

import os
import sys
from typing import Any

from sqlalchemy import Engine, event

from tsuzuki.cli import main
from tsuzuki.store.sql.prepared import AutocommitConnection

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

    def count_on_line(line: AutocommitConnection, sql: str, values: Any = ()) -> list[Any]:
        count(sql)
        return send(line, sql, values)

    # Replaced from outside: a line tells nobody what it sends, and needs to tell only a benchmark.
    AutocommitConnection.send = count_on_line  # type: ignore[method-assign]


if __name__ == "__main__":
    count_into(sys.argv.pop(1))
    main()
