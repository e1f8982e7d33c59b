"""The handler of a load test. It is copied into the workspace of the processes, so it imports nothing of ours.

Every execution appends its start and end to one file, and stores a row in a fenced transaction. Both keep the order of
events across processes: the file shows whether two attempts overlapped, the table whether a fenced attempt could
still write.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from sqlalchemy import text

FILE = Path("ledger")
TABLE = "pieces_done"


def note(key: str, attempt: int, word: str) -> None:
    opened = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(opened, f"{key} {attempt} {word}\n".encode())
    finally:
        os.close(opened)


async def brief(run: Any, *, key: str, seconds: float) -> None:
    note(key, run.attempt, "start")
    # Takes a while, so that a kill or a pause hits the middle of an execution.
    await asyncio.sleep(seconds)
    with run.transaction() as connection:
        row = {"key": key, "attempt": run.attempt}
        insert = f"INSERT INTO {TABLE} (key, attempt) VALUES (:key, :attempt)"
        connection.execute(text(insert), row)
    note(key, run.attempt, "end")
