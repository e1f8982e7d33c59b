"""What the processes of a load test execute. It is copied into their workspace, so it stands alone.

Every execution appends to one file what it does, and stores a row while its run is still its own. Both keep the
order in which things happened, whoever wrote: so the file tells whether two attempts at one piece of work
were ever under way together, and the table whether one that was given up on could still write.
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
    note(key, run.attempt, "begin")
    # The work that takes a while: what is killed or frozen must be in the middle of something.
    await asyncio.sleep(seconds)
    with run.transaction() as connection:
        row = {"key": key, "attempt": run.attempt}
        insert = f"INSERT INTO {TABLE} (key, attempt) VALUES (:key, :attempt)"
        connection.execute(text(insert), row)
    note(key, run.attempt, "end")
