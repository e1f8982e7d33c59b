"""What the system waits for, by its own tables: for the journal of a soak that settles."""

from datetime import datetime

from sqlalchemy import Row, text

from tsuzuki.model.states import LIVE_STATES
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.types import UtcTime

LIVE = ", ".join(f"'{state}'" for state in sorted(LIVE_STATES))
QUERIES = {
    "run": text(
        "SELECT j.name || ' ' || lower(r.state) AS what, count(*) AS times, min(r.scheduled_for) AS until"
        " FROM tsuzuki_job_runs r JOIN tsuzuki_job_definitions j ON j.id = r.job_definition_id"
        f" WHERE r.state IN ({LIVE}) GROUP BY 1 ORDER BY 1"
    ),
    "feed that failed": text(
        "SELECT name || ' ' || failures || 'x: ' || coalesce(error, '') AS what, 1 AS times,"
        " not_before AS until FROM tsuzuki_feeds WHERE failures > 0 ORDER BY 1"
    ),
    "item": text(
        "SELECT state AS what, count(*) AS times, min(not_before) AS until FROM tsuzuki_waiting_items"
        " GROUP BY 1 ORDER BY 1"
    ),
    "model": text(
        "SELECT model || ': ' || why AS what, 1 AS times, parked_until AS until FROM tsuzuki_feed_models"
    ),
    "account": text(
        "SELECT account AS what, 1 AS times, limited_until AS until FROM tsuzuki_feed_accounts"
        " WHERE limited_until IS NOT NULL"
    ),
    "post": text(
        "SELECT state AS what, count(*) AS times, min(next_look_at) AS until FROM tsuzuki_feed_posts"
        " WHERE state <> 'sent' GROUP BY 1 ORDER BY 1"
    ),
    "mail": text(
        "SELECT state AS what, count(*) AS times, NULL AS until FROM tsuzuki_book_mails"
        " WHERE state <> 'sent' GROUP BY 1 ORDER BY 1"
    ),
    "search": text(
        "SELECT 'at ' || c.start_index || coalesce(', held by run ' || s.held_by_run, '') AS what,"
        " 1 AS times, NULL AS until FROM collect_cursor c JOIN tsuzuki_books_searches s"
        " ON s.job_name = c.job_name AND s.query_set_hash = c.query_set_hash"
        " WHERE c.is_exhausted = 0"
    ),
}


def waits(database: Database) -> list[str]:
    """One line for each kind of thing that waits, with the time until the first of them may go on."""
    with database.read() as connection:
        now = database.now(connection)
        return [
            f"{kind} {_told(row, now)}"
            for kind, query in QUERIES.items()
            for row in connection.execute(query.columns(until=UtcTime))
        ]


def _told(row: Row[tuple[object, ...]], now: datetime) -> str:
    times = f" ({row.times})" if row.times > 1 else ""
    seconds = 0.0 if row.until is None else (row.until - now).total_seconds()
    return f"{row.what}{times}" + (f", in {seconds:.1f} s" if seconds > 0 else "")
