"""Whether somebody attends to a run: a process that is alive, as far as can be told from here."""

import os
import socket
from datetime import timedelta

from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import Worker, WorkerState
from tsuzuki.store import leadership, settings, workers
from tsuzuki.store.sql.database import Connection, Database


class Liveness:
    """A worker is taken for dead once it has been silent too long, or at once if it was a process of
    this machine that is gone. To be wrong costs time, never safety: whoever is taken over is fenced."""

    def __init__(self, *, database: Database, host: str | None = None) -> None:
        self._database = database
        self._host = host or socket.gethostname()

    def is_attended(self, connection: Connection, run: Run, *, pending_seconds: float) -> bool:
        """Whether a run is worked on, or will be by whoever is there."""
        match run.state:
            case RunState.ASSIGNED | RunState.RUNNING:
                worker = workers.get(connection, run.assigned_worker_id or "")
                return worker is not None and self._lives(connection, worker)
            case RunState.PENDING | RunState.ORPHANED:
                # Whoever asked for it a moment ago is about to see to it; a repetition waits for
                # anybody.
                age = self._database.now(connection) - run.created_at
                is_fresh = run.retry_of is None and age < timedelta(seconds=pending_seconds)
                return is_fresh or self.is_anybody_there(connection)
            case _:
                return False

    def is_anybody_there(self, connection: Connection | None = None) -> bool:
        """Whether a worker takes runs, and somebody leads it."""
        if connection is None:
            with self._database.read() as own:
                return self.is_anybody_there(own)
        leads = leadership.current(connection)
        if not leads.is_valid or self._is_dead_here(connection, leads.holder):
            return False
        return any(
            worker.state is WorkerState.ATTACHED
            and worker.capacity > 0
            and self._lives(connection, worker)
            for worker in workers.find(connection)
        )

    def dead_leader(self) -> bool:
        """Whether the one who leads was a process of this machine that is gone: then nobody need
        wait for its lease to end."""
        with self._database.read() as connection:
            leads = leadership.current(connection)
            return leads.is_valid and self._is_dead_here(connection, leads.holder)

    def _is_dead_here(self, connection: Connection, worker_id: str | None) -> bool:
        worker = workers.get(connection, worker_id) if worker_id else None
        return worker is not None and worker.host == self._host and not _exists(worker.pid)

    def _lives(self, connection: Connection, worker: Worker) -> bool:
        if worker.state not in (WorkerState.ATTACHED, WorkerState.DRAINING):
            return False
        silent = self._database.now(connection) - worker.heartbeat_at
        ttl = settings.load(connection).worker_ttl_seconds
        is_gone = worker.host == self._host and not _exists(worker.pid)
        # Heard at a moment that is yet to come is heard before the clock was put back: nobody knows when.
        was_heard = -timedelta(seconds=CLOCK_TOLERANCE_SECONDS) < silent < timedelta(seconds=ttl)
        return was_heard and not is_gone


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
