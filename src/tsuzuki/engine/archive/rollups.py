"""Counts each hour that is over: how many runs of each job ended in it, how, and after how long.

The hour is read and counted outside any write transaction, and stored in a short one that takes effect only if
no other process has counted it and this one still leads. An end is counted once, however late it is stored and whatever
the clock does: either it is seen by the count of its hour, or it is noted as late and added.
"""

from datetime import UTC, datetime, timedelta

from tsuzuki.store import rollups
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import changes
from tsuzuki.store.sql.database import Database

SETTLED_AFTER = timedelta(minutes=5)
"""A move is stored with the time of its statement, and committed a little later."""

LATE_AT_ONCE = 1000
KEPT = timedelta(days=400)
BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


class HourlyRollups:
    """One of the leader's duties, in the loop of the archivist."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    def tick(self, term: Term) -> bool:
        """Add ends that were stored late, then count the next hour in which something moved and that is over.
        Whether there may be more to do."""
        has_more_late = self._add_late_ends(term)
        with self._database.read() as connection:
            now = self._database.now(connection)
            progress = rollups.progress(connection)
            counted = progress.until if progress else BEFORE_ALL
            first = rollups.first_move_since(connection, counted)
        if first is None or rollups.hour_of(first) >= rollups.hour_of(now - SETTLED_AFTER):
            return has_more_late
        return self._count(term, rollups.hour_of(first), counted, now)

    def _count(self, term: Term, hour: datetime, counted: datetime, now: datetime) -> bool:
        """Close the hour, wait for the transactions that may not have seen that, and count it."""
        with self._database.write() as connection:
            if not rollups.close_hour(connection, term=term, counted=counted, hour=hour):
                return False
        with self._database.read() as connection:
            if changes.oldest_write(connection) < hour + rollups.HOUR:
                return False
            # Before the hour was closed, a clock that was set back may have stored ends of an earlier one.
            if first := rollups.first_move_since(connection, counted):
                hour = min(hour, rollups.hour_of(first))
            counts = rollups.ended_in_time(connection, hour)
        with self._database.write() as connection:
            is_ours = rollups.store_hour(
                connection, term=term, counted=counted, hour=hour, counts=counts
            )
            if is_ours:
                rollups.delete_before(connection, now - KEPT, term=term)
        return is_ours

    def _add_late_ends(self, term: Term) -> bool:
        with self._database.read() as connection:
            if not rollups.has_late_ends(connection):
                return False
        with self._database.write() as connection:
            return rollups.add_late_ends(connection, term=term, limit=LATE_AT_ONCE) == LATE_AT_ONCE
