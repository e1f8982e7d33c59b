"""SQLite: since when this leader has known that a worker's silence is on record.

A worker that waits for the write lock relies on having read that there is no record. The time in the record is older
than its commit, if the leader was paused in between, and the database's clock may step. So the notice is counted by our
own clock, from a read that began after the commit.
"""

from collections.abc import Collection, Mapping

from tsuzuki.model.clock import Clock
from tsuzuki.model.settings import NOTICE_SHARE
from tsuzuki.store.workers import RecordedSilence


class SilenceNotices:
    """Used by one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known_since: dict[tuple[str, RecordedSilence], float] = {}

    def note(self, records: Mapping[str, RecordedSilence], *, read_at: float) -> None:
        """Which workers' silence is on record, by a read that began at that monotonic time."""
        known = self._known_since
        self._known_since = {record: known.get(record, read_at) for record in records.items()}

    def under_notice(self, notice_seconds: float) -> Collection[str]:
        """The workers whose silence we have not known to be on record for that long, or for as long as a worker relies
        on by its own settings."""
        now = self._clock.monotonic()
        return {
            worker
            for (worker, record), since in self._known_since.items()
            if since > now - max(notice_seconds, (record.grace_seconds or 0.0) * NOTICE_SHARE)
        }
