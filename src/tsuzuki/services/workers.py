"""Workers and the leader: list them, and drain, detach or depose them."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.model.worker import StoredWorker, WorkerState
from tsuzuki.services.acting import ActingService
from tsuzuki.services.liveness import Liveness
from tsuzuki.services.missing_handlers import MissingHandler, missing_handlers
from tsuzuki.store import audit, leadership, settings, workers
from tsuzuki.store.leadership import Leadership, PastTerm, Term
from tsuzuki.store.runs import capacity
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.wakeups import channels
from tsuzuki.store.workers import Confirming

__all__ = ["EngineStatus", "Leadership", "LeaseView", "PastTerm", "WorkerView", "Workers"]


@dataclass(frozen=True, kw_only=True)
class WorkerView:
    """A worker, what it holds, and how long ago it was heard (None if clock skew hides it)."""

    worker: StoredWorker
    held: int
    silent_seconds: float | None
    leads: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.worker),
            "tags": sorted(self.worker.tags),
            "abilities": self.worker.abilities and self.worker.abilities.as_dict(),
            "held": self.held,
            "silent_seconds": None
            if self.silent_seconds is None
            else round(self.silent_seconds, 3),
            "leads": self.leads,
        }


@dataclass(frozen=True, kw_only=True)
class LeaseView:
    """How old the lease of the leader is, by the clock of the database. One that has run out is told too."""

    epoch: int
    is_valid: bool
    expires_at: datetime
    age_seconds: float
    """Since it was renewed."""
    left_seconds: float
    """Until it ends if it is not renewed; below zero if it has ended."""


@dataclass(frozen=True, kw_only=True)
class EngineStatus:
    """Leader and workers at one moment by the clock of the database. `is_led`: a live process leads. `lease` is the
    one that is held, or was held last."""

    at: datetime
    is_led: bool
    leadership: Leadership
    lease: LeaseView | None
    workers: list[WorkerView]
    confirming: list[Confirming]
    missing_handlers: list[MissingHandler]
    """Of jobs with due runs that no live worker can execute."""
    silent_after_seconds: float

    def is_silent(self, view: WorkerView) -> bool:
        """Whether it should have been heard, and was not."""
        return view.worker.is_present and view.worker.is_silent(self.at, self.silent_after_seconds)

    @property
    def usable(self) -> list[WorkerView]:
        """The workers that can be given runs."""
        return [
            view
            for view in self.workers
            if view.worker.state is WorkerState.ATTACHED
            and view.worker.capacity > 0
            and not self.is_silent(view)
        ]

    @property
    def slots(self) -> int:
        return sum(view.worker.capacity for view in self.usable)


class Workers(ActingService):
    def __init__(self, *, database: Database, actor: str) -> None:
        self._database = database
        self._actor = actor
        self._liveness = Liveness(database=database)

    def workers(self, *, with_gone: bool = False) -> list[WorkerView]:
        with self._database.read() as connection:
            lead = self._liveness.live_leader(connection)
            return self._workers(connection, lead, with_gone=with_gone)

    def get(self, worker_id: str) -> WorkerView:
        """Raises `NotFound`."""
        with self._database.read() as connection:
            _worker(connection, worker_id)
            lead = self._liveness.live_leader(connection)
            views = self._workers(connection, lead, with_gone=True)
            return next(view for view in views if view.worker.id == worker_id)

    def _workers(
        self, connection: Connection, lead: Leadership | None, *, with_gone: bool
    ) -> list[WorkerView]:
        held = capacity.held_runs(connection).by_worker
        now = self._database.now(connection)
        return [
            WorkerView(
                worker=worker,
                held=held.get(worker.id, 0),
                silent_seconds=worker.silent_seconds(now),
                leads=lead is not None and lead.holder == worker.id,
            )
            for worker in workers.find(connection, with_gone=with_gone)
        ]

    def leader(self) -> Leadership:
        with self._database.read() as connection:
            return leadership.current(connection)

    def lease(self) -> LeaseView | None:
        """The lease that a process holds or held last; None if it was given back, or none was ever taken."""
        with self._database.read() as connection:
            return _lease(connection, leadership.current(connection))

    def past_terms(self, *, limit: int) -> list[PastTerm]:
        """The newest first; the current one is among them."""
        with self._database.read() as connection:
            return leadership.past_terms(connection, limit=limit)

    def status(self) -> EngineStatus:
        """Leader, workers and what waits to be confirmed, at one moment."""
        with self._database.read() as connection:
            current = leadership.current(connection)
            lead = self._liveness.live_leader(connection)
            return EngineStatus(
                at=self._database.now(connection),
                is_led=lead is not None,
                leadership=current,
                lease=_lease(connection, current),
                workers=self._workers(connection, lead, with_gone=False),
                confirming=workers.confirming(connection),
                missing_handlers=missing_handlers(
                    connection, self._liveness.live_workers(connection)
                ),
                silent_after_seconds=settings.load(connection).worker_ttl_seconds,
            )

    def drain(self, worker_id: str) -> None:
        """Let a worker finish what it has, take nothing new, and leave."""
        with self._database.write() as connection:
            worker = _worker(connection, worker_id)
            if not workers.drain(connection, [worker_id]):
                raise _wrong_state(worker)
            self._note(connection, "worker.drain", worker, WorkerState.DRAINING)

    def detach(self, worker_id: str) -> None:
        """Detach a worker: what it runs is stopped, and retried elsewhere."""
        with self._database.write() as connection:
            worker = _worker(connection, worker_id)
            if not workers.detach(connection, [worker_id]):
                raise _wrong_state(worker)
            self._note(connection, "worker.detach", worker, WorkerState.DETACHED)

    def step_down(self) -> Leadership:
        """End the current leader's term; another election follows at once."""
        with self._database.write() as connection:
            before = leadership.current(connection)
            if leadership.depose(connection) is None:
                raise Conflict(
                    "there is no leader", hint="Start a leader with: tsuzuki up", code="no_leader"
                )
            self._note_end_of_term(connection, before.holder, before.epoch)
        return before

    def depose(self, term: Term) -> bool:
        """End a term whose leader was judged dead. False if it is over already: a successor is left alone."""
        with self._database.write() as connection:
            if not leadership.release(connection, term=term):
                return False
            self._note_end_of_term(connection, term.holder, term.epoch)
        return True

    def _note_end_of_term(self, connection: Connection, holder: str | None, epoch: int) -> None:
        audit.record(
            connection,
            actor=self._actor,
            action="leader.step_down",
            object_type="leader",
            object_id=str(epoch),
            before={"holder": holder, "epoch": epoch},
        )

    def _note(
        self, connection: Connection, action: str, worker: StoredWorker, after: WorkerState
    ) -> None:
        channels.notify(connection, worker.id)
        audit.record(
            connection,
            actor=self._actor,
            action=action,
            object_type="worker",
            object_id=worker.id,
            before={"state": worker.state},
            after={"state": after},
        )


def _lease(connection: Connection, now: Leadership) -> LeaseView | None:
    if now.holder is None:
        return None
    lease = leadership.lease_remaining(connection)
    return LeaseView(
        epoch=now.epoch,
        is_valid=now.is_valid,
        expires_at=lease.expires_at,
        age_seconds=lease.age_seconds,
        left_seconds=(lease.expires_at - lease.read_at).total_seconds(),
    )


def _worker(connection: Connection, worker_id: str) -> StoredWorker:
    worker = workers.get(connection, worker_id)
    if worker is None:
        known = [w.id for w in workers.find(connection)]
        raise NotFound(
            f"there is no worker {worker_id!r}",
            hint=did_you_mean(worker_id, known) + "See: tsuzuki worker ls",
            code="worker_unknown",
        )
    return worker


def _wrong_state(worker: StoredWorker) -> Conflict:
    return Conflict(
        f"worker {worker.id} is {worker.state}",
        hint="See: tsuzuki worker ls --all",
        code="worker_state",
    )
