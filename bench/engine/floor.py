"""The floor: the least a durable queue can do, by hand, on the same database.

One table, one worker, batches of 500: claim, start and finish are three UPDATEs, each committed. No guards, no history,
no retries, nothing that could be fenced.
"""

import sqlite3
from pathlib import Path

BATCH = 500


def drain_sqlite(path: Path, jobs: int) -> None:
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, state TEXT NOT NULL)")
        connection.execute("CREATE INDEX floor_state ON floor (state)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO floor (state) VALUES (?)", [("waiting",)] * jobs)
        connection.execute("COMMIT")
        done = 0
        while done < jobs:
            ids = [
                row[0]
                for row in connection.execute(
                    "SELECT id FROM floor WHERE state = 'waiting' LIMIT ?", (BATCH,)
                )
            ]
            for state in ("given", "running", "done"):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(
                    "UPDATE floor SET state = ? WHERE id = ?", [(state, one) for one in ids]
                )
                connection.execute("COMMIT")
            done += len(ids)
    connection.close()


def drain_postgres(url: str, jobs: int) -> None:
    import psycopg  # noqa: PLC0415 -- only where it is measured

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE floor (id bigserial PRIMARY KEY, state text NOT NULL)")
        connection.execute("CREATE INDEX floor_state ON floor (state)")
        connection.execute(
            "INSERT INTO floor (state) SELECT 'waiting' FROM generate_series(1, %s)", (jobs,)
        )
        connection.execute("VACUUM ANALYZE floor")
        done = 0
        while done < jobs:
            ids = [
                row[0]
                for row in connection.execute(
                    "SELECT id FROM floor WHERE state = 'waiting' LIMIT %s", (BATCH,)
                )
            ]
            for state in ("given", "running", "done"):
                connection.execute("UPDATE floor SET state = %s WHERE id = ANY(%s)", (state, ids))
            done += len(ids)
