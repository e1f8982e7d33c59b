"""The leader of a worker's own process, as the worker sees it.

While runs wait and no slot is free, the slots of runs that end are the only ones to fill. Then the worker has the
leader fill them in the transaction that stores the ends: one commit instead of two, and no thread waits for another.
The leader's lock is taken after the ends are written, so that it never waits for what they may wait for.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from tsuzuki.engine.worker.local_start import LocalStart
from tsuzuki.store.sql.database import Connection


class Refilled(NamedTuple):
    """How many runs were assigned, and whether that leaves no slot free: then the leader has nothing to do."""

    assigned: int
    is_full: bool


NOT_REFILLED = Refilled(assigned=0, is_full=False)

Refill = Callable[[Connection], Refilled]
"""Assigns what waits to the slots that are free, inside a transaction."""

Starting = Callable[[], AbstractContextManager[LocalStart]]
"""Entered before runs are started for the worker, left after the commit; what it has started is adopted then."""


class LocalLeader(Protocol):
    @property
    def leads(self) -> bool:
        """Whether this process leads."""

    def refilling(self, starting: Starting) -> AbstractContextManager[Refill | None]:
        """Around a transaction that stores ends. None if this process does not lead."""


class NoLocalLeader:
    """Of a process that never leads."""

    leads = False

    def refilling(self, starting: Starting) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()
