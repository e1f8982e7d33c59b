"""Explain why a run is not running, by checking every rule that can delay it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from tsuzuki.model.job import Job
from tsuzuki.model.run import Run
from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.model.states import ContinuationState, Outcome, RunState, Trigger
from tsuzuki.model.worker import StoredWorker, WorkerState
from tsuzuki.services.liveness import LOCKED_HINT, Liveness
from tsuzuki.services.missing_handlers import missing_handler
from tsuzuki.store import jobs, leadership, settings, workers
from tsuzuki.store.runs import cancel_requests, capacity, runs
from tsuzuki.store.runs.capacity import HeldRuns
from tsuzuki.store.sql.database import Connection

RUNS_NAMED = 5
"""Of so many runs that are under way the ids are told."""


class Cause(StrEnum):
    """A stable word for each thing that keeps a run waiting, or tells where it is."""

    ENDED = "ended"
    RUNNING = "running"
    ASSIGNED = "assigned"
    NOT_DUE = "not_due"
    WAITING_FOR_RETRY = "waiting_for_retry"
    PAUSED = "paused"
    JOB_REMOVED = "job_removed"
    JOB_LIMIT = "job_limit"
    KEY_LIMIT = "key_limit"
    DATABASE_LOCKED = "database_locked"
    NO_LEADER = "no_leader"
    NO_WORKER = "no_worker"
    NO_TAGS = "no_worker_with_tags"
    NO_HANDLER = "no_worker_with_handler"
    CAPACITY = "capacity"
    WORKER_SILENT = "worker_silent"
    CONFIRMING = "confirming"
    CANCEL_REQUESTED = "cancel_requested"
    NEXT = "next"


HELD_BY_ITS_JOB = frozenset({Cause.PAUSED, Cause.JOB_REMOVED, Cause.JOB_LIMIT, Cause.KEY_LIMIT})
"""A run that waits for one of these waits because its job says so: it is not late."""


@dataclass(frozen=True, kw_only=True)
class StatusReason:
    """One reason, in a word and in a sentence, and what to do about it."""

    cause: Cause
    sentence: Sentence
    hint: Sentence | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All reasons that hold now. The first one is the one to look at."""

    run_id: int
    job: str
    state: RunState
    outcome: Outcome | None
    reasons: list[StatusReason]

    def as_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "job": self.job,
            "state": self.state,
            "outcome": self.outcome,
            "reasons": [asdict(reason) for reason in self.reasons],
        }


@dataclass(frozen=True, kw_only=True)
class _RunFacts:
    connection: Connection
    run: Run
    job: Job
    now: datetime
    liveness: Liveness
    live_workers: list[StoredWorker]
    """Without those that were started for another job or run alone."""
    held: HeldRuns


def explain(connection: Connection, run: Run, *, now: datetime, liveness: Liveness) -> Explanation:
    job = jobs.get(connection, run.job_definition_id)
    if job is None:
        raise ValueError(f"run {run.id} has no job")
    facts = _RunFacts(
        connection=connection,
        run=run,
        job=job,
        now=now,
        liveness=liveness,
        live_workers=_may_get(liveness.live_workers(connection), run, job),
        held=capacity.held_runs(connection),
    )
    match run.state:
        case RunState.PENDING | RunState.ORPHANED:
            reasons = _why_waiting(facts)
        case RunState.ASSIGNED | RunState.RUNNING:
            reasons = _where_held(facts)
        case _:
            reasons = [_ended(facts)]
    return Explanation(
        run_id=run.id, job=run.job_name, state=run.state, outcome=run.outcome, reasons=reasons
    )


def _why_waiting(facts: _RunFacts) -> list[StatusReason]:
    reasons = [reason for question in _QUESTIONS if (reason := question(facts)) is not None]
    return reasons or [_NEXT]


def _may_get(alive: Sequence[StoredWorker], run: Run, job: Job) -> list[StoredWorker]:
    """Without the workers that were started for another job or run alone."""
    return [
        worker
        for worker in alive
        if worker.only_job in (None, job.spec.name) and worker.only_run in (None, run.id)
    ]


def _database_locked(facts: _RunFacts) -> StatusReason | None:
    sentence = facts.liveness.why_locked(facts.connection)
    if sentence is None:
        return None
    return StatusReason(cause=Cause.DATABASE_LOCKED, sentence=sentence, hint=LOCKED_HINT)


def _not_due(facts: _RunFacts) -> StatusReason | None:
    run = facts.run
    if run.scheduled_for <= facts.now:
        return None
    when = run.scheduled_for
    if run.trigger is Trigger.RETRY:
        return StatusReason(
            cause=Cause.WAITING_FOR_RETRY,
            sentence=Sentence(
                "Attempt %(attempt)s, a retry of run %(run)s, is due at %(when)s.",
                run=run.retry_of,
                when=when,
                attempt=run.attempt,
            ),
        )
    return StatusReason(
        cause=Cause.NOT_DUE, sentence=Sentence("Scheduled for %(when)s.", when=when)
    )


def _paused(facts: _RunFacts) -> StatusReason | None:
    name = facts.job.spec.name
    if facts.job.deleted_at is not None:
        return StatusReason(
            cause=Cause.JOB_REMOVED,
            sentence=Sentence("The job %(job)s was deleted; the run will be canceled.", job=name),
        )
    if facts.job.spec.enabled:
        return None
    return StatusReason(
        cause=Cause.PAUSED,
        sentence=Sentence("The job %(job)s is disabled.", job=name),
        hint=Sentence(
            "Enable it with: %(command)s", command=CommandLine(f"tsuzuki job enable {name}")
        ),
    )


def _at_job_limit(facts: _RunFacts) -> StatusReason | None:
    limit = facts.job.spec.concurrency_limit
    held = facts.held.by_job.get(facts.job.id, 0)
    if limit is None or held < limit:
        return None
    others = [
        Sentence("run %(run)s (%(state)s)", run=run.id, state=run.state)
        for run in runs.find_live(facts.connection, facts.job.id)
        if run.state in (RunState.ASSIGNED, RunState.RUNNING)
    ]
    return StatusReason(
        cause=Cause.JOB_LIMIT,
        sentence=Sentence(
            "The job has reached its concurrency limit: %(held)s of %(limit)s in progress "
            "(%(runs)s).",
            limit=limit,
            held=held,
            runs=tuple(others[:RUNS_NAMED]),
        ),
        hint=Sentence(
            "The run starts when one of them finishes. To allow more at a time, raise %(key)s.",
            key=CommandLine("max_concurrent"),
        ),
    )


def _at_key_limit(facts: _RunFacts) -> StatusReason | None:
    limit, key = facts.job.spec.max_concurrent_per_key, facts.run.concurrency_key
    if limit is None or key is None:
        return None
    held = facts.held.by_key.get((facts.job.id, key), 0)
    if held < limit:
        return None
    return StatusReason(
        cause=Cause.KEY_LIMIT,
        sentence=Sentence(
            "The concurrency key %(key)s has reached its limit: %(held)s of %(limit)s in progress.",
            limit=limit,
            key=repr(key),
            held=held,
        ),
    )


def _no_leader(facts: _RunFacts) -> StatusReason | None:
    if facts.liveness.live_leader(facts.connection) is not None:
        return None
    lead = leadership.current(facts.connection)
    if lead.is_valid:
        return StatusReason(
            cause=Cause.NO_LEADER,
            sentence=Sentence(
                "The leader %(leader)s has exited. No runs are assigned until its lease expires at "
                "%(until)s.",
                leader=lead.holder,
                until=lead.lease_expires_at,
            ),
        )
    return StatusReason(
        cause=Cause.NO_LEADER,
        sentence=Sentence(
            "There has been no leader since %(since)s, so no runs are assigned.",
            since=lead.lease_expires_at,
        )
        if lead.epoch
        else Sentence("No leader has been elected yet, so no runs are assigned."),
        hint=Sentence("Start one with: %(command)s", command=CommandLine("tsuzuki up")),
    )


def _no_worker(facts: _RunFacts) -> StatusReason | None:
    if not facts.live_workers:
        return StatusReason(
            cause=Cause.NO_WORKER,
            sentence=_without_live_workers(facts),
            hint=Sentence(
                "Start one with: %(command)s or %(other)s",
                command=CommandLine("tsuzuki up"),
                other=CommandLine("tsuzuki worker"),
            ),
        )
    wanted = facts.job.spec.tags
    if any(wanted <= worker.tags for worker in facts.live_workers):
        return None
    return StatusReason(
        cause=Cause.NO_TAGS,
        sentence=Sentence(
            "No attached worker has all required tags: %(tags)s.", tags=tuple(sorted(wanted))
        ),
        hint=Sentence(
            "Start one with: %(command)s",
            command=CommandLine(
                " ".join(["tsuzuki worker", *(f"--tag {tag}" for tag in sorted(wanted))])
            ),
        ),
    )


def _no_handler(facts: _RunFacts) -> StatusReason | None:
    missing = missing_handler(facts.job.spec, facts.live_workers)
    if missing is None:
        return None
    return StatusReason(cause=Cause.NO_HANDLER, sentence=missing.sentence, hint=missing.hint)


def _without_live_workers(facts: _RunFacts) -> Sentence:
    attached = [
        (worker, facts.liveness.why_dead(facts.connection, worker))
        for worker in workers.find(facts.connection)
        if worker.state is WorkerState.ATTACHED
    ]
    if any(why is None for _, why in attached):
        return Sentence(
            "All live workers were started for a single other job or run: %(jobs)s.",
            jobs=tuple(sorted({worker.only_job or "" for worker, why in attached if why is None})),
        )
    dead = tuple(
        Sentence("%(worker)s %(why)s", worker=worker.id, why=why) for worker, why in attached
    )
    if not dead:
        return Sentence("No worker is attached.")
    return Sentence("No attached worker is alive: %(workers)s.", workers=dead)


def _no_free_slot(facts: _RunFacts) -> StatusReason | None:
    spec = facts.job.spec
    able = [
        worker
        for worker in facts.live_workers
        if spec.tags <= worker.tags and worker.can_execute(spec.needs)
    ]
    loads = [(facts.held.by_worker.get(worker.id, 0), worker.capacity) for worker in able]
    if not able or any(held < capacity for held, capacity in loads):
        return None
    held, capacity = (sum(column) for column in zip(*loads, strict=True))
    return StatusReason(
        cause=Cause.CAPACITY,
        sentence=Sentence(
            "All slots are in use (%(held)s of %(capacity)s). Eligible workers: %(count)s.",
            count=len(able),
            held=held,
            capacity=capacity,
        ),
        hint=Sentence("The run starts when a slot is free. To add slots, start another worker."),
    )


def _where_held(facts: _RunFacts) -> list[StatusReason]:
    run = facts.run
    worker = workers.get(facts.connection, run.assigned_worker_id or "")
    reasons = [_held_by(facts)]
    why_dead = facts.liveness.why_dead(facts.connection, worker)
    if why_dead is not None:
        lost_after_seconds = settings.load(facts.connection).lost_after_seconds
        reasons.insert(
            0,
            StatusReason(
                cause=Cause.WORKER_SILENT,
                sentence=Sentence(
                    "The worker %(worker)s %(why)s. After %(seconds)s s without a heartbeat, the "
                    "run is considered lost.",
                    worker=run.assigned_worker_id,
                    why=why_dead,
                    seconds=f"{lost_after_seconds:g}",
                ),
            ),
        )
    if request := cancel_requests.of_runs(facts.connection, [run.id]).get(run.id):
        reasons.insert(
            0,
            StatusReason(
                cause=Cause.CANCEL_REQUESTED,
                sentence=Sentence(
                    "%(actor)s requested cancellation at %(at)s. The run will be canceled when its "
                    "handler's transaction ends.",
                    actor=request.requested_by,
                    at=request.requested_at,
                ),
            ),
        )
    if run.continuation_state is ContinuationState.CONFIRMING:
        reasons.insert(
            0,
            StatusReason(
                cause=Cause.CONFIRMING,
                sentence=Sentence(
                    "The worker is waiting for the leader to confirm that it still owns the run."
                ),
            ),
        )
    return reasons


def _held_by(facts: _RunFacts) -> StatusReason:
    run = facts.run
    if run.state is RunState.ASSIGNED:
        return StatusReason(
            cause=Cause.ASSIGNED,
            sentence=Sentence(
                "Assigned to %(worker)s at %(at)s, not started yet.",
                worker=run.assigned_worker_id,
                at=run.assigned_at,
            ),
        )
    return StatusReason(
        cause=Cause.RUNNING,
        sentence=Sentence(
            "Running on %(worker)s since %(since)s.",
            worker=run.assigned_worker_id,
            since=run.started_at,
        ),
        hint=Sentence(
            "Follow its log with: %(command)s",
            command=CommandLine(f"tsuzuki run logs {run.id} --follow"),
        ),
    )


def _ended(facts: _RunFacts) -> StatusReason:
    run = facts.run
    hint = None if run.outcome in _NOT_RETRIED else _how_to_retry(facts)
    return StatusReason(cause=Cause.ENDED, sentence=_end_of(run), hint=hint)


_NOT_RETRIED = frozenset({Outcome.SUCCEEDED, Outcome.SKIPPED})


def _how_to_retry(facts: _RunFacts) -> Sentence:
    """A run is retried only once: of one that was, the newest attempt is the one to look at."""
    newest = retry = runs.get_retry(facts.connection, facts.run.id)
    while retry is not None:
        newest, retry = retry, runs.get_retry(facts.connection, retry.id)
    if newest is None:
        command = CommandLine(f"tsuzuki run retry {facts.run.id}")
        return Sentence("Retry it with: %(command)s", command=command)
    return Sentence(
        "Retried as run %(run)s (%(state)s). See: %(command)s",
        run=newest.id,
        state=newest.state,
        command=CommandLine(f"tsuzuki run explain {newest.id}"),
    )


def _end_of(run: Run) -> Sentence:
    if run.covers_ticks > 1:
        return Sentence(
            "Skipped %(ticks)s scheduled times from %(first)s to %(last)s: %(reason)s.",
            ticks=run.covers_ticks,
            first=run.scheduled_for,
            last=run.covers_until,
            reason=run.reason,
        )
    if run.outcome is Outcome.SKIPPED:
        return _skipped(run)
    values: dict[str, Any] = {"at": run.finished_at, "state": run.state}
    match run.reason, run.error:
        case None, None:
            return Sentence("Finished at %(at)s: %(state)s.", **values)
        case None, error:
            return Sentence("Finished at %(at)s: %(state)s: %(error)s", **values, error=error)
        case reason, None:
            return Sentence("Finished at %(at)s: %(state)s (%(reason)s).", **values, reason=reason)
        case reason, error:
            return Sentence(
                "Finished at %(at)s: %(state)s (%(reason)s): %(error)s",
                **values,
                reason=reason,
                error=error,
            )


def _skipped(run: Run) -> Sentence:
    if run.blocked_by is not None:
        return Sentence(
            "Skipped at %(at)s: run %(run)s was still in progress.",
            at=run.finished_at,
            run=run.blocked_by,
        )
    return Sentence("Skipped at %(at)s: %(reason)s.", at=run.finished_at, reason=run.reason)


def waiting_reasons(
    connection: Connection, found: Sequence[Run], *, now: datetime, liveness: Liveness
) -> dict[int, StatusReason]:
    """The first reason of each of these runs that waits, as `explain` gives it. What holds for all of them is asked
    once, and nothing for a run that is not due."""
    waiting = [run for run in found if run.state in (RunState.PENDING, RunState.ORPHANED)]
    if not waiting:
        return {}
    ids = {run.job_definition_id for run in waiting}
    of_runs = {job_id: job for job_id in ids if (job := jobs.get(connection, job_id)) is not None}
    is_any_due = any(run.scheduled_for <= now for run in waiting)
    alive = liveness.live_workers(connection) if is_any_due else []
    held = capacity.held_runs(connection)
    known: dict[object, StatusReason | None] = {}
    reasons: dict[int, StatusReason] = {}
    for run in waiting:
        if (job := of_runs.get(run.job_definition_id)) is None:
            continue
        facts = _RunFacts(
            connection=connection,
            run=run,
            job=job,
            now=now,
            liveness=liveness,
            live_workers=_may_get(alive, run, job),
            held=held,
        )
        reasons[run.id] = _first_reason(facts, known)
    return reasons


def _first_reason(facts: _RunFacts, known: dict[object, StatusReason | None]) -> StatusReason:
    for question in _QUESTIONS:
        if question in _OF_ALL:
            key: object = question
        elif question is _at_job_limit:
            key = question, facts.job.id
        else:
            key = question, facts.run.id
        if key not in known:
            known[key] = question(facts)
        if (reason := known[key]) is not None:
            return reason
    return _NEXT


_QUESTIONS: tuple[Callable[[_RunFacts], StatusReason | None], ...] = (
    _database_locked,
    _not_due,
    _paused,
    _at_job_limit,
    _at_key_limit,
    _no_leader,
    _no_worker,
    _no_handler,
    _no_free_slot,
)
_OF_ALL = frozenset({_database_locked, _no_leader})
_NEXT = StatusReason(
    cause=Cause.NEXT, sentence=Sentence("The run is due and will be assigned next.")
)
