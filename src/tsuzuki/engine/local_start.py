"""The start of a run on the worker of the leader's own process, in the statement that assigns it.

`LocalStart` is all that leader and worker of one process know of each other. The leader starts runs inside `starting`,
and its thread executes nothing: after the commit they are in the worker's queue, and the worker's own thread takes
them from there. Every run that is RUNNING in the worker's name enters the slots through that queue, also what the
worker started itself, and what it finds again after a lost reply.

While runs wait and no slot is free, the slots of runs that end are the only ones to fill. Then the worker has the
leader fill them in the transaction that stores the ends (`refilling`): one commit instead of two, and no thread waits
for another.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

from tsuzuki.engine.task import Task
from tsuzuki.model.clock import Clock
from tsuzuki.model.job import Job
from tsuzuki.model.run import WorkOrder
from tsuzuki.store import events
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Connection
from tsuzuki.store.sql.prepared import AnyConnection

RECONCILE_SECONDS = 30.0
"""How long after a lost reply the database may still commit what we sent."""


class Refilled(NamedTuple):
    """How many runs were assigned, and whether that leaves no slot free: then the leader has nothing to do."""

    assigned: int
    is_full: bool


NOT_REFILLED = Refilled(assigned=0, is_full=False)

Refill = Callable[[Connection, Term], AbstractContextManager[Refilled]]
"""Assigns runs to the slots that are free, inside a transaction; left after the commit."""


class LocalStart:
    """Used by the threads of both. Without a worker that accepts runs nothing starts here, and without a leader
    nothing is refilled."""

    def __init__(
        self,
        *,
        clock: Clock,
        worker_id: Callable[[], str | None] = lambda: None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`worker_id` answers None while the worker accepts no runs. `wake` wakes it."""
        self._clock = clock
        self._worker_id = worker_id
        self._wake = wake
        self._term: Callable[[], Term | None] = lambda: None
        self._refill: Refill | None = None
        self.lock = threading.Lock()
        """Held from a statement of the leader that starts runs until they are in the queue; and by code of the worker
        that must not miss them: to change its id, to stop accepting, to reconcile."""
        self.queue: deque[Task] = deque()
        """Runs that are RUNNING in the worker's name and do not execute yet."""
        self.must_reconcile = False
        """Whether the worker must look for runs that were started in its name, because a reply was lost."""
        self._reconcile_until = 0.0

    # --- for the leader -------------------------------------------------------------------------

    def led_by(self, term: Callable[[], Term | None], refill: Refill) -> None:
        """From now on this process may lead: `term` answers under which term it does."""
        self._term = term
        self._refill = refill

    @property
    def worker_id(self) -> str | None:
        """The worker that runs may be started on."""
        return self._worker_id()

    @contextmanager
    def starting(self, *, wakes: bool = True) -> Iterator[list[Task]]:
        """Around the transaction in which the leader starts runs: those that it adds to the list are executed after
        the commit. `wakes` unless it is the worker's own thread that does this."""
        tasks: list[Task] = []
        try:
            with self.lock:
                try:
                    yield tasks
                except BaseException:
                    self.note_unknown_commit()
                    raise
                self.queue.extend(tasks)
        finally:
            if wakes and (tasks or self.must_reconcile):
                self._wake()

    # --- for the worker -------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this process leads."""
        return self._term() is not None

    def refilling(self, connection: Connection) -> AbstractContextManager[Refilled]:
        """Inside a transaction that has stored ends: have the leader of this process assign what waits. Left after
        the commit."""
        term = self._term()
        if term is None or self._refill is None:
            return nullcontext(NOT_REFILLED)
        return self._refill(connection, term)

    def note_unknown_commit(self) -> None:
        """A reply was lost: runs may have been started in the worker's name, now or within `RECONCILE_SECONDS`."""
        self.must_reconcile = True
        self._reconcile_until = self._clock.monotonic() + RECONCILE_SECONDS

    def may_be_unconfirmed(self) -> bool:
        """Whether a commit whose reply was lost may still be under way."""
        return self._clock.monotonic() < self._reconcile_until


def load_tasks(
    connection: AnyConnection, orders: Sequence[WorkOrder], known: Mapping[int, Job]
) -> list[Task]:
    """Started runs, with everything that executing them needs. `known` has their jobs."""
    event_ids = [run.event_id for run in orders if run.event_id is not None]
    payloads = events.payloads(connection, event_ids)
    return [
        Task(
            run=run,
            started=run.started,
            spec=known[run.job_definition_id].spec,
            event=payloads.get(run.event_id) if run.event_id is not None else None,
        )
        for run in orders
    ]
