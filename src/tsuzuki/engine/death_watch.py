"""Looks for processes of this machine that have ended without leaving, and records their deaths in the database.

A recorded death detaches the worker at once, lets the leader fail its runs without waiting for its silence, and ends
its lease. Every process looks, because the one that died may have been the leader; the files let one look at a time.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random

from tsuzuki.engine.log import log
from tsuzuki.engine.process_files import ProcessFile, ProcessFiles
from tsuzuki.store import leadership, workers
from tsuzuki.store.sql.database import ConnectionUse, Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

LOOK_SECONDS = 5.0
LOOK_SECONDS_PER_FILE = 0.5
"""How often to look at all files when nothing calls for it: so seldom that the looks of all processes together cost no
more per process in a larger fleet, and so often that one of them looks twice per second."""

SOON_SECONDS = (0.02, 0.1, 0.4)
"""The pauses between the looks after a file was closed: the kernel frees its lock a moment later, processes that end
together do not end at the same moment, and another process may be looking."""


class DeathWatch:
    """`step` is called by a loop of its own."""

    def __init__(
        self,
        *,
        database: Database,
        files: ProcessFiles,
        jitter: Random,
        on_call: Callable[[], None],
    ) -> None:
        """`on_call` is called after each look that a closed file called for: whichever process recorded a death, its
        lease may be free now."""
        self._database = database
        self._files = files
        self._jitter = jitter
        self._on_call = on_call
        self._soon: list[float] = []
        self._closed: frozenset[str] = frozenset()
        """The files to look at soon; none: all."""
        self._files_seen = 0

    def step(self) -> float:
        """Look, then wait for a reason to look again; the first time without a reason, because a process may follow one
        that was killed."""
        self.tick(self._closed or None)
        if self._closed:
            self._on_call()
        if not self._soon:
            self._closed = frozenset()
        closed = self._files.wait(self._soon.pop(0) if self._soon else self._seconds_to_next())
        if not closed:
            return 0.0
        first, *self._soon = SOON_SECONDS
        self._closed |= frozenset(closed)
        return first

    def _seconds_to_next(self) -> float:
        seconds = max(LOOK_SECONDS, LOOK_SECONDS_PER_FILE * self._files_seen)
        return seconds * self._jitter.uniform(0.8, 1.2)

    def wake(self) -> None:
        """Wait no more: the process is about to end."""
        self._files.wake()

    def tick(self, names: Collection[str] | None = None) -> Sequence[str]:
        """One look at these files, or at all. Answers the names of the processes whose deaths it recorded."""
        with self._files.look(names) as files:
            if names is None:
                self._files_seen = len(files) or self._files_seen
            dead = [file for file in files if has_died(file)]
            died = [file.name for file in dead]
            if died:
                self._record(died)
            for file in dead:
                file.remove()
        return died

    def _record(self, names: Sequence[str]) -> None:
        with self._database.used_for(ConnectionUse.VITAL), self._database.write() as connection:
            died = workers.record_deaths(connection, names)
            had_lease = leadership.release_dead(connection, names)
            if died or had_lease:
                channels.notify(connection, WakeupChannel.LEADER)
        log.warning("processes ended without leaving", processes=list(names), led=had_lease)
        self._on_call()


def has_died(file: ProcessFile) -> bool:
    """Both must agree: a pid may look dead where it means another process, and a lock may be free because a handler has
    closed all descriptors of its process."""
    return file.is_unlocked() and file.is_out_of_process_table()
