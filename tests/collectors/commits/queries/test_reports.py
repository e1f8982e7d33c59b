"""Lists of collections: each once, page after page, also if two were started in one second."""

from datetime import UTC, datetime, timedelta

from tsuzuki.collectors.commits.queries import ledger, reports
from tsuzuki.store.sql.database import Database

START = datetime(2026, 11, 1, tzinfo=UTC)


def test_every_collection_comes_once(database: Database) -> None:
    with database.write() as connection:
        for number in (0, 0, 1):
            collection_id, now = ledger.new_id(), START + timedelta(days=number)
            ledger.open_collection(connection, collection_id, [], job_run_id=0, now=now)
            ledger.cancel(connection, collection_id, now=now)
        together = [one.collection_id for one in reports.summaries(connection)]
        seen: list[str] = []
        while page := reports.summaries(connection, after=seen[-1] if seen else None, limit=1):
            seen += [one.collection_id for one in page]
        assert (seen, reports.count(connection)) == (together, 3)
