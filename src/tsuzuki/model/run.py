"""A run: one execution of a job. `NewRun` is before storing, `Run` after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tsuzuki.model.losses import NO_LOSSES, Losses
from tsuzuki.model.states import (
    Actor,
    ContinuationState,
    Outcome,
    Reason,
    RunState,
    Trigger,
    outcome_of,
)

NO_ARGUMENTS: Mapping[str, Any] = {}


class NewRun(NamedTuple):
    """A run to be created. Without an `idempotency_key`, two requests make two runs. A tuple, because ten
    thousand may be created at once."""

    job_definition_id: int
    trigger: Trigger
    scheduled_for: datetime | None
    """None: now, by the database's clock."""
    arguments: Mapping[str, Any] = NO_ARGUMENTS
    priority: int = 0
    idempotency_key: str | None = None
    concurrency_key: str | None = None
    event_id: int | None = None
    attempt: int = 1
    retries_used: int = 0
    retry_of: int | None = None
    origin_id: int | None = None
    covers_ticks: int = 1
    covers_until: datetime | None = None
    losses: int = 0
    losses_free: int = 0
    work_key: str | None = None
    """None on a first attempt: a random key."""
    defaulted_arguments: Sequence[str] | None = None
    """The names of the arguments that a request with a key left to the job's defaults; None if there are none."""
    blocked_by: int | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stored run as it was when it was read. Every move names its `version` (optimistic locking)."""

    id: int
    job_definition_id: int
    job_name: str
    state: RunState
    version: int
    trigger: Trigger
    scheduled_for: datetime
    created_at: datetime
    priority: int
    arguments: Mapping[str, Any]
    attempt: int
    retries_used: int
    orphan_count: int
    orphans_free: int
    """Of those, the ones that do not count against `max_orphans`."""
    losses: int
    losses_free: int
    retry_of: int | None
    origin_id: int | None
    idempotency_key: str | None
    """What keeps the run from being created twice."""
    work_key: str | None
    """What its handler passes to outside services: `key_of_work`."""
    concurrency_key: str | None
    event_id: int | None
    covers_ticks: int
    covers_until: datetime | None
    assigned_worker_id: str | None
    assigned_at: datetime | None
    leader_epoch: int | None
    started_at: datetime | None
    finished_at: datetime | None
    continuation_state: ContinuationState
    continuation_check_deadline_at: datetime | None
    reason: Reason | None
    error: str | None
    result: Any
    progress_processed: int
    progress_total: int | None
    progress_at: datetime | None
    log_ref: str | None
    blocked_by: int | None
    """The unfinished run because of which a scheduled time was skipped (`overlap`)."""

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, for people; None while it has not."""
        return outcome_of(self.state, self.reason)

    @property
    def ref(self) -> "RunRef":
        return RunRef(self.id, self.version)


@dataclass(frozen=True, kw_only=True)
class Transition:
    """One row of a run's history. Written by a trigger of the database with each accepted move."""

    run_id: int
    version: int
    from_state: RunState
    to_state: RunState
    at: datetime
    actor: Actor
    actor_id: str
    epoch: int | None
    reason: Reason | None
    worker_id: str | None


class RunRef(NamedTuple):
    """A run and the version its mover last read: the guard of every move. A tuple, as `WorkOrder` is, because
    hundreds are made in every round."""

    id: int
    version: int


class CancelRequest(NamedTuple):
    """Who asked to cancel a run, when, and the reason it will end with."""

    run_id: int
    reason: Reason
    requested_by: str
    requested_at: datetime


class StartedRun(NamedTuple):
    """A run that this worker owns: every write for it names its `version` and `epoch`."""

    id: int
    version: int
    epoch: int


class WorkOrder(NamedTuple):
    """A started run, with what its worker needs to execute it."""

    id: int
    version: int
    leader_epoch: int
    job_definition_id: int
    scheduled_for: datetime
    priority: int
    arguments: Mapping[str, Any]
    attempt: int
    retries_used: int
    losses: int
    losses_free: int
    origin_id: int | None
    work_key: str | None
    concurrency_key: str | None
    event_id: int | None

    @property
    def started(self) -> StartedRun:
        return StartedRun(self.id, self.version, self.leader_epoch)


def retry_key(run_id: int) -> str:
    """The idempotency key of a run's retry: at most one, whichever process ends the run."""
    return f"retry:{run_id}"


def key_of_work(run: Run | WorkOrder) -> str:
    """The key by which outside services recognize the work of a run: that of its caller or a random one, and the
    same for all attempts. Runs that were created before keys were stored have one by the number of the first."""
    return f"run-{run.origin_id or run.id}" if run.work_key is None else run.work_key


def new_retry(
    run: Run | WorkOrder,
    *,
    scheduled_for: datetime,
    retries_used: int = 0,
    losses: Losses = NO_LOSSES,
) -> NewRun:
    """The run that retries `run`: same job, arguments and keys, one attempt more."""
    return NewRun(
        job_definition_id=run.job_definition_id,
        trigger=Trigger.RETRY,
        scheduled_for=scheduled_for,
        arguments=run.arguments,
        priority=run.priority,
        idempotency_key=retry_key(run.id),
        concurrency_key=run.concurrency_key,
        event_id=run.event_id,
        attempt=run.attempt + 1,
        retries_used=retries_used,
        retry_of=run.id,
        origin_id=run.origin_id or run.id,
        losses=losses.counted,
        losses_free=losses.free,
        work_key=key_of_work(run),
    )
