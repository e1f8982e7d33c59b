"""What changes while one looks: moves and progress of runs. For readers that follow, and come back to where they were.

A `Position` is written as a text that any process on the same database continues from.
"""

from collections.abc import Iterator

from tsuzuki.store.runs import changes, progress, runs
from tsuzuki.store.runs.changes import ChangesPage, Position, RunChange
from tsuzuki.store.runs.progress import RunProgress
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import listeners
from tsuzuki.store.wakeups.listeners import Listener

__all__ = [
    "Changes",
    "ChangesPage",
    "Listener",
    "Position",
    "PositionLost",
    "RunChange",
    "RunProgress",
]

PAGE_CHANGES = 200
PROGRESS_MAX = 500


class PositionLost(Exception):
    """What came after a position cannot be told any more: the reader must look at everything anew."""


class Changes:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def now(self) -> Position:
        """The position behind everything that is committed."""
        with self._database.read() as connection:
            return changes.now(connection)

    def known(self, written: str) -> Position:
        """The position that a text stands for. Raises `PositionLost`."""
        position = changes.parse(written)
        if position is None:
            raise PositionLost(written)
        return position

    def between(
        self, known: Position, until: Position, *, page_changes: int = PAGE_CHANGES
    ) -> Iterator[ChangesPage]:
        """Every change after `known` up to `until`, page by page, in the order of their times as far as each page
        goes. Raises `PositionLost` if some of them may have been deleted."""
        if changes.is_elsewhere(known, until):
            raise PositionLost(str(known))
        more = known != until
        while more:
            with self._database.read() as connection:
                page = changes.between(connection, known, until, limit=page_changes)
                # Asked last: a row that was deleted before it was read is known to be deleted by now.
                if changes.is_lost(connection, known):
                    raise PositionLost(str(known))
            known, more = page.position, page.more
            yield page

    def newest_run_id(self) -> int:
        """The id of the run that was stored last; 0 if there is none."""
        with self._database.read() as connection:
            return runs.newest_id(connection)

    def progress(self) -> list[RunProgress]:
        """How far the running runs are, the newest first."""
        with self._database.read() as connection:
            return progress.of_running(connection, limit=PROGRESS_MAX)

    def listen(self) -> Listener:
        """What wakes when other processes have something to do: a hint that something may have changed."""
        return listeners.listen(self._database)
