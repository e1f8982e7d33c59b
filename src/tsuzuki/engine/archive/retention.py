"""The leader's duties for what is over: hours are counted, then old logs are archived and old runs deleted."""

from tsuzuki.engine.archive.archivist import Archived, Archivist
from tsuzuki.engine.archive.rollups import HourlyRollups
from tsuzuki.store.leadership import Term


class Retention:
    """Counts come first: an hour is counted from runs that are still there."""

    def __init__(self, *, rollups: HourlyRollups, archivist: Archivist) -> None:
        self._rollups = rollups
        self._archivist = archivist

    def tick(self, term: Term) -> Archived:
        """Some of each. `more` if the next tick should follow at once."""
        has_more_hours = self._rollups.tick(term)
        archived = self._archivist.tick(term)
        archived.more = archived.more or has_more_hours
        return archived
