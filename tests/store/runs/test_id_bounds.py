"""The first run since a moment: found by halving, as a scan would find it."""

from datetime import timedelta

from sqlalchemy import select

from support.many_runs import START, add_many_runs
from tsuzuki.store.runs.id_bounds import first_since, oldest_and_newest
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

COUNT = 100


def test_halving_finds_what_a_scan_finds(database: Database) -> None:
    with database.read() as connection:
        assert oldest_and_newest(connection) is None
    add_many_runs(database, COUNT)
    with database.read() as connection:
        rows = connection.execute(select(job_runs.c.id, job_runs.c.created_at)).all()
        assert oldest_and_newest(connection) == (min(rows)[0], max(rows)[0])
        for seconds in range(-7, COUNT + 30, 7):
            moment = START + timedelta(seconds=seconds)
            for low, high in ((1, COUNT + 1), (20, 50), (30, 30), (90, COUNT + 40)):
                since = [i for i, at in rows if low <= i < high and at >= moment]
                found = first_since(connection, moment, low, high)
                if since:
                    assert found == min(since), (seconds, low, high)
                else:
                    # Beyond the newest run there is none: the search ends behind it, or at `high`.
                    assert found in (high, COUNT + 1), (seconds, low, high)
