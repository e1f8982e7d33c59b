"""Why is it not running? Every rule that keeps a run where it is, asked one by one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tsuzuki.model.job import Job
from tsuzuki.model.run import Run
from tsuzuki.model.states import ContinuationState, RunState, Trigger
from tsuzuki.model.worker import Worker, WorkerState
from tsuzuki.store import jobs, leadership, settings, workers
from tsuzuki.store.runs import capacity, runs
from tsuzuki.store.runs.capacity import HeldRuns
from tsuzuki.store.sql.database import Connection


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
    NO_LEADER = "no_leader"
    NO_WORKER = "no_worker"
    NO_TAGS = "no_worker_with_tags"
    CAPACITY = "capacity"
    WORKER_SILENT = "worker_silent"
    CONFIRMING = "confirming"
    NEXT = "next"


@dataclass(frozen=True, kw_only=True)
class Ground:
    """One reason, in a word and in a sentence, and what to do about it."""

    cause: Cause
    sentence: str
    hint: str | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All reasons that hold now. The first one is the one to look at."""

    run_id: int
    job: str
    state: RunState
    grounds: list[Ground]


@dataclass(frozen=True, kw_only=True)
class _Scene:
    connection: Connection
    run: Run
    job: Job
    now: datetime
    attached: list[Worker]
    held: HeldRuns


def explain(connection: Connection, run: Run, *, now: datetime) -> Explanation:
    job = jobs.get(connection, run.job_definition_id)
    if job is None:
        raise ValueError(f"run {run.id} has no job")
    scene = _Scene(
        connection=connection,
        run=run,
        job=job,
        now=now,
        attached=[w for w in workers.find(connection) if w.state is WorkerState.ATTACHED],
        held=capacity.held_runs(connection),
    )
    match run.state:
        case RunState.PENDING | RunState.ORPHANED:
            grounds = _why_waiting(scene)
        case RunState.ASSIGNED | RunState.RUNNING:
            grounds = _where_held(scene)
        case _:
            grounds = [_ended(scene)]
    return Explanation(run_id=run.id, job=run.job_name, state=run.state, grounds=grounds)


def _why_waiting(scene: _Scene) -> list[Ground]:
    questions: list[Callable[[_Scene], Ground | None]] = [
        _not_due,
        _paused,
        _at_job_limit,
        _at_key_limit,
        _no_leader,
        _no_worker,
        _no_room,
    ]
    grounds = [ground for question in questions if (ground := question(scene)) is not None]
    return grounds or [
        Ground(cause=Cause.NEXT, sentence="It is due and nothing is in its way: it is next.")
    ]


def _not_due(scene: _Scene) -> Ground | None:
    run = scene.run
    if run.scheduled_for <= scene.now:
        return None
    when = _moment(run.scheduled_for)
    if run.trigger is Trigger.RETRY:
        return Ground(
            cause=Cause.WAITING_FOR_RETRY,
            sentence=f"It repeats run {run.retry_of} and waits for {when} (attempt {run.attempt}).",
        )
    return Ground(cause=Cause.NOT_DUE, sentence=f"It is not due before {when}.")


def _paused(scene: _Scene) -> Ground | None:
    name = scene.job.spec.name
    if scene.job.deleted_at is not None:
        return Ground(
            cause=Cause.JOB_REMOVED, sentence=f"Its job {name} was removed; it will be canceled."
        )
    if scene.job.spec.enabled:
        return None
    return Ground(
        cause=Cause.PAUSED,
        sentence=f"Its job {name} is switched off.",
        hint=f"Switch it on with: tsuzuki job enable {name}",
    )


def _at_job_limit(scene: _Scene) -> Ground | None:
    limit = scene.job.spec.concurrency_limit
    held = scene.held.by_job.get(scene.job.id, 0)
    if limit is None or held < limit:
        return None
    others = [
        f"run {run.id} ({run.state})"
        for run in runs.find_live(scene.connection, scene.job.id)
        if run.state in (RunState.ASSIGNED, RunState.RUNNING)
    ]
    return Ground(
        cause=Cause.JOB_LIMIT,
        sentence=f"Its job allows {limit} at once, and {held} are under way: {', '.join(others[:5])}.",
        hint="It starts when one of them ends; or raise max_concurrent.",
    )


def _at_key_limit(scene: _Scene) -> Ground | None:
    limit, key = scene.job.spec.max_concurrent_per_key, scene.run.concurrency_key
    if limit is None or key is None:
        return None
    held = scene.held.by_key.get((scene.job.id, key), 0)
    if held < limit:
        return None
    return Ground(
        cause=Cause.KEY_LIMIT,
        sentence=f"Its job allows {limit} at once for the key {key!r}, and {held} are under way.",
    )


def _no_leader(scene: _Scene) -> Ground | None:
    lead = leadership.current(scene.connection)
    if lead.is_valid:
        return None
    since = f"since {_moment(lead.lease_expires_at)}" if lead.epoch else "and nobody ever did"
    return Ground(
        cause=Cause.NO_LEADER,
        sentence=f"Nobody leads, {since}: nothing is given out.",
        hint="Start one with: tsuzuki up",
    )


def _no_worker(scene: _Scene) -> Ground | None:
    if not scene.attached:
        return Ground(
            cause=Cause.NO_WORKER,
            sentence="No worker is attached.",
            hint="Start one with: tsuzuki up, or: tsuzuki worker",
        )
    wanted = scene.job.spec.tags
    if any(wanted <= worker.tags for worker in scene.attached):
        return None
    return Ground(
        cause=Cause.NO_TAGS,
        sentence=f"No attached worker has all of its tags: {', '.join(sorted(wanted))}.",
        hint=f"Start one with: tsuzuki worker {' '.join(f'--tag {tag}' for tag in sorted(wanted))}",
    )


def _no_room(scene: _Scene) -> Ground | None:
    able = [worker for worker in scene.attached if scene.job.spec.tags <= worker.tags]
    loads = [(scene.held.by_worker.get(worker.id, 0), worker.capacity) for worker in able]
    if not able or any(held < capacity for held, capacity in loads):
        return None
    held, capacity = (sum(column) for column in zip(*loads, strict=True))
    return Ground(
        cause=Cause.CAPACITY,
        sentence=f"All {len(able)} workers that may run it are full: {held} of {capacity} slots.",
        hint="It starts when a slot is free; or start another worker.",
    )


def _where_held(scene: _Scene) -> list[Ground]:
    run = scene.run
    worker = workers.get(scene.connection, run.assigned_worker_id or "")
    grounds = [_held_by(scene)]
    in_force = settings.load(scene.connection)
    silence = _silence(worker, scene.now, in_force.worker_ttl_seconds)
    if silence is not None:
        grounds.insert(
            0,
            Ground(
                cause=Cause.WORKER_SILENT,
                sentence=f"Its worker {run.assigned_worker_id} {silence}; "
                f"after {in_force.lost_after_seconds:g} s of silence the run is taken from it.",
            ),
        )
    if run.continuation_state is ContinuationState.CONFIRMING:
        grounds.insert(
            0,
            Ground(
                cause=Cause.CONFIRMING,
                sentence="Its worker asks to be confirmed before it goes on.",
            ),
        )
    return grounds


def _silence(worker: Worker | None, now: datetime, ttl_seconds: float) -> str | None:
    """How a worker is silent; None if it is heard."""
    if worker is None or not worker.is_present:
        return "is not attached any more"
    if not worker.is_silent(now, ttl_seconds):
        return None
    age_seconds = (now - worker.heartbeat_at).total_seconds()
    if age_seconds < 0:
        return "sent its last heartbeat before the database's clock was put back"
    return f"has been silent for {age_seconds:.0f} s"


def _held_by(scene: _Scene) -> Ground:
    run = scene.run
    if run.state is RunState.ASSIGNED:
        return Ground(
            cause=Cause.ASSIGNED,
            sentence=f"It was given to {run.assigned_worker_id} at {_moment(run.assigned_at)} "
            "and has not begun.",
        )
    return Ground(
        cause=Cause.RUNNING,
        sentence=f"It has been running on {run.assigned_worker_id} since {_moment(run.started_at)}.",
        hint=f"Follow it with: tsuzuki run logs {run.id} --follow",
    )


def _ended(scene: _Scene) -> Ground:
    run = scene.run
    why = f", {run.reason}" if run.reason else ""
    said = f": {run.error}" if run.error else "."
    return Ground(
        cause=Cause.ENDED,
        sentence=f"It ended at {_moment(run.finished_at)}: {run.state}{why}{said}",
        hint=None
        if run.state is RunState.SUCCEEDED
        else f"Repeat it with: tsuzuki run retry {run.id}",
    )


def _moment(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%SZ") if moment else "an unknown time"
