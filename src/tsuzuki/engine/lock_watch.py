"""Log a long wait for SQLite's write lock, once, and who leads: a leader that is paused inside a write stops all
writers.

Reading works while another process holds the lock.
"""

from tsuzuki.engine.log import log
from tsuzuki.store import leadership, workers
from tsuzuki.store.sql.database import Database

LOCK_WAIT_SECONDS = 2.0
"""A wait that is longer is logged."""


class LockWatch:
    """`tick` is called by a loop that does not write."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._is_logged = False

    def tick(self) -> None:
        waited = self._database.lock_wait_seconds()
        if waited < LOCK_WAIT_SECONDS:
            self._is_logged = False
        elif not self._is_logged:
            self._is_logged = True
            self._log(waited)

    def _log(self, waited: float) -> None:
        with self._database.read() as connection:
            lead = leadership.current(connection)
            process = workers.get(connection, lead.holder or "")
        log.warning(
            "waiting for the write lock",
            database=str(self._database.path),
            seconds=round(waited, 1),
            leader=lead.holder,
            leader_host=process.host if process else None,
            leader_pid=process.pid if process else None,
            leading_since=lead.taken_at,
            lease_expires_at=lead.lease_expires_at,
            hint="A process that is stopped inside a write holds it until it goes on or ends.",
        )
