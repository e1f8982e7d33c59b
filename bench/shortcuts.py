"""Gain of each optimization that bypasses a library, measured with and without it in one run.

    python -m bench.shortcuts [--rounds 7]

Processor time on SQLite; the median of the rounds, which take turns.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import select

from bench.rows import run, temporary_folder
from tsuzuki.model.clock import SystemClock
from tsuzuki.store.schema import migrate
from tsuzuki.store.schema.tables import settings
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.store.sql.prepared import execute

REPEATS = 2_000
STATEMENT = select(settings.c.key, settings.c.value).where(settings.c.key == "none")


def prepared(database: Database) -> None:
    with database.read() as connection:
        for _ in range(REPEATS):
            execute(connection, STATEMENT).all()


def by_sqlalchemy(database: Database) -> None:
    with database.read() as connection:
        for _ in range(REPEATS):
            connection.execute(STATEMENT).all()


def single_reads(database: Database) -> None:
    for _ in range(REPEATS):
        with database.single_read() as connection:
            execute(connection, STATEMENT).all()


def transactions(database: Database) -> None:
    for _ in range(REPEATS):
        with database.read() as connection:
            execute(connection, STATEMENT).all()


PAIRS: dict[str, tuple[Callable[[Database], None], Callable[[Database], None]]] = {
    "a statement: prepared.execute, Connection.execute": (prepared, by_sqlalchemy),
    "a single read: autocommit, a transaction": (single_reads, transactions),
}


def microseconds(way: Callable[[Database], None], database: Database) -> float:
    started = time.process_time()
    way(database)
    return (time.process_time() - started) / REPEATS * 1e6


def measures(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with temporary_folder("tsuzuki-shortcuts-") as folder:
        database = open_database(f"sqlite:///{folder}/bench.db", clock=SystemClock())
        migrate.upgrade(database, [migrate.ENGINE])
        for title, (ours, ordinary) in PAIRS.items():
            taken = [
                (microseconds(ours, database), microseconds(ordinary, database))
                for _ in range(options.rounds)
            ]
            with_it, without = (statistics.median(figures) for figures in zip(*taken, strict=True))
            yield {
                "measure": title,
                "program": "store/sql",
                "with_us": with_it,
                "without_us": without,
                "without_to_with": without / with_it,
            }
        database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    run(parser, measures, name="shortcuts")


if __name__ == "__main__":
    main()
