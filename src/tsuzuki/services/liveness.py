"""Liveness of workers and of the leader, as far as this machine can tell.

A worker is dead once it has been silent longer than its time to live, or at once if it was a process of this
machine that has ended. A wrong answer costs time, never safety: what is taken over is fenced.
"""

import os
import socket
from datetime import timedelta
from pathlib import Path

from tsuzuki.model.run import Run
from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import StoredWorker, WorkerState
from tsuzuki.store import jobs, leadership, settings, workers
from tsuzuki.store.leadership import Leadership, Term
from tsuzuki.store.sql.database import Connection, Database

LOCKED_HINT = Sentence(
    "Find the process that holds the lock, then resume it (%(command)s) or end it.",
    command=CommandLine("kill -CONT PID"),
)


class Liveness:
    def __init__(self, *, database: Database, host: str | None = None) -> None:
        self._database = database
        self._host = host or socket.gethostname()

    def is_worked_on(self, connection: Connection, run: Run, *, fresh_seconds: float) -> bool:
        """Whether a live worker has a run, or a live leader can still assign it. A new run counts for
        `fresh_seconds`: the caller that stored it is about to start an engine."""
        match run.state:
            case RunState.ASSIGNED | RunState.RUNNING:
                worker = workers.get(connection, run.assigned_worker_id or "")
                return self._is_alive(connection, worker)
            case RunState.PENDING | RunState.ORPHANED:
                age = self._database.now(connection) - run.created_at
                is_fresh = run.retry_of is None and age < timedelta(seconds=fresh_seconds)
                return is_fresh or self._has_live_leader_and_worker(
                    connection, run.job_name, run=run
                )
            case _:
                return False

    def has_live_leader_and_worker(
        self, job_name: str | None = None, *, lasting: bool = False
    ) -> bool:
        """Whether a run that is stored now, of that job, would be assigned and started. A worker that was started for
        one job counts only if that is `job_name`: it gets nothing else. If it must be `lasting`, such a worker never
        counts: it leaves when its own work is done."""
        with self._database.read() as connection:
            return self._has_live_leader_and_worker(connection, job_name, lasting=lasting)

    def term_of_leader_that_died_here(self) -> Term | None:
        """The current term, if its leader was a process of this machine that has ended. Then its lease need
        not be waited for."""
        with self._database.read() as connection:
            current = leadership.current(connection)
            holder = current.holder
            if holder is None or not current.is_valid or not self._died_here(connection, holder):
                return None
            return Term(holder=holder, epoch=current.epoch)

    def has_live_leader(self) -> bool:
        with self._database.read() as connection:
            return self.live_leader(connection) is not None

    def live_leader(self, connection: Connection) -> Leadership | None:
        """The leader, if its lease is valid and its process has not ended here."""
        current = leadership.current(connection)
        is_alive = current.is_valid and not self._died_here(connection, current.holder)
        return current if is_alive else None

    def live_workers(self, connection: Connection) -> list[StoredWorker]:
        """The workers that can be given runs."""
        return [
            worker
            for worker in workers.find(connection)
            if worker.state is WorkerState.ATTACHED and self._is_alive(connection, worker)
        ]

    def why_dead(self, connection: Connection, worker: StoredWorker | None) -> Sentence | None:
        """Why a worker is taken for dead, in words that follow its name. None if it is alive."""
        if worker is None or not worker.is_present:
            return Sentence("is no longer attached")
        if self._process_has_ended(worker):
            return Sentence("has exited")
        now = self._database.now(connection)
        if not worker.is_silent(now, settings.load(connection).worker_ttl_seconds):
            return None
        age_seconds = worker.silent_seconds(now)
        if age_seconds is None:
            return Sentence(
                "sent its last heartbeat before the database clock was set back (clock skew)"
            )
        return Sentence("has not responded for %(seconds)s s", seconds=f"{age_seconds:.0f}")

    def why_database_is_locked(self) -> str | None:
        """The same with what to do about it."""
        with self._database.read() as connection:
            sentence = self.why_locked(connection)
        return None if sentence is None else f"{sentence} {LOCKED_HINT}"

    def why_locked(self, connection: Connection) -> Sentence | None:
        """If the leader is not heard and the write lock of an SQLite file is held: who that probably is."""
        if self.live_leader(connection) is not None or not self._database.is_write_locked():
            return None
        lead = leadership.current(connection)
        process = workers.get(connection, lead.holder or "")
        file = CommandLine(self._database.path or "")
        if not lead.holder:
            return Sentence(
                "There is no leader, and the database file %(file)s is locked, so nothing can be "
                "written.",
                file=file,
            )
        if process is None:
            return Sentence(
                "The leader %(leader)s is not responding, and the database file %(file)s is "
                "locked, so nothing can be written.",
                leader=lead.holder,
                file=file,
            )
        return Sentence(
            "The leader %(leader)s (process %(pid)s on %(host)s) is not responding, and the "
            "database file %(file)s is locked, so nothing can be written.",
            leader=lead.holder,
            pid=process.pid,
            host=process.host,
            file=file,
        )

    def _has_live_leader_and_worker(
        self,
        connection: Connection,
        job_name: str | None,
        *,
        lasting: bool = False,
        run: Run | None = None,
    ) -> bool:
        """With a `run`, a worker that was started for one run counts only if that is the one, or retried by it: the
        process that waits for it goes on with the retry."""
        if self.live_leader(connection) is None:
            return False
        job = jobs.get_by_name(connection, job_name) if job_name else None
        return any(
            worker.capacity > 0
            and (worker.only_job is None or (worker.only_job == job_name and not lasting))
            and (run is None or worker.only_run in (None, run.id, run.retry_of))
            and (job is None or worker.can_execute(job.spec.needs))
            for worker in self.live_workers(connection)
        )

    def _died_here(self, connection: Connection, worker_id: str | None) -> bool:
        worker = workers.get(connection, worker_id) if worker_id else None
        return worker is not None and self._process_has_ended(worker)

    def _is_alive(self, connection: Connection, worker: StoredWorker | None) -> bool:
        return self.why_dead(connection, worker) is None

    def _process_has_ended(self, worker: StoredWorker) -> bool:
        """Known of processes of this machine only."""
        return worker.host == self._host and not is_running(worker.pid)


def is_running(pid: int) -> bool:
    """Whether a process of this machine can still do something. A zombie, which has ended and was not
    reaped by its parent (in a container without an init process), cannot."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and is another user's
    return _state(pid) not in ("Z", "X")


def _state(pid: int) -> str | None:
    """The state letter of /proc; None where there is no /proc. The name before it may hold anything."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[0]
