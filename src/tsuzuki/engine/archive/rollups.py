"""Counts each hour that is over: how many runs of each job ended in it, how, and after how long.

The hour is read and counted outside any write transaction, and stored in a short one that takes effect only if
no other process has counted it and this one still leads.
"""

from datetime import UTC, datetime, timedelta

from tsuzuki.store import rollups
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

SETTLED_AFTER = timedelta(minutes=5)
"""A move is stored with the time of its statement, and committed a little later."""

KEPT = timedelta(days=400)
BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


class HourlyRollups:
    """One of the leader's duties, in the loop of the archivist."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    def tick(self, term: Term) -> bool:
        """Count the next hour in which something moved and that is over. Whether there may be another one."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            closed = rollups.hour_of(now - SETTLED_AFTER)
            until = rollups.counted_until(connection)
            first = rollups.first_move_since(connection, until or BEFORE_ALL)
            if first is None or rollups.hour_of(first) >= closed:
                return False
            hour = rollups.hour_of(first)
            counts = rollups.ended_between(connection, hour, hour + rollups.HOUR)
        with self._database.write() as connection:
            is_ours = rollups.store_hour(
                connection, term=term, counted=until or hour, hour=hour, counts=counts
            )
            if is_ours:
                rollups.delete_before(connection, now - KEPT, term=term)
        return is_ours
