"""Invariants, checked after every commit against the changes that the store's triggers have recorded.

They keep a model of all runs beside the database, moved only by recorded changes. So a check costs one query
however many runs there are, and no more than that if the commit moved no run and wrote no row.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulation.jobs import JOBS
from simulation.violations import InvariantViolated
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.states import MOVES, MOVES_AT_ONCE, Actor, Reason, RunState
from tsuzuki.store.leadership import Term

if TYPE_CHECKING:
    from simulation.client import Client
    from simulation.node import Node
    from simulation.world import World

HELD = frozenset({RunState.ASSIGNED, RunState.RUNNING})
EXCUSED_SECONDS = 12.0
"""So long after a fault it still excuses a missed deadline: longer than any timeout of the engine."""


@dataclass
class ObservedRun:
    """A run as the recorded changes have made it."""

    job_id: int
    key: str | None
    state: RunState = RunState.PENDING
    version: int = 1
    worker_id: str | None = None
    epoch: int | None = None


LeadershipRow = tuple[int, str | None, str]
"""Epoch, holder, and the end of the lease."""

LAST_SEEN_SQL = (
    "SELECT epoch, holder, lease_expires_at, (SELECT coalesce(max(seq), 0) FROM sim_changes),"
    " (SELECT coalesce(max(id), 0) FROM sim_rows) FROM leadership"
)
CHANGES_SQL = (
    "SELECT seq, run_id, before_state, state, before_version, version, moved_as, moved_by,"
    " epoch, reason, worker_id FROM sim_changes WHERE seq > ? ORDER BY seq"
)


def steps_of(row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The moves in one recorded change: two if it is a legal pair made in one statement."""
    seq, run_id, before, state, before_version, version, moved_as, moved_by, *rest = row
    at_once = MOVES_AT_ONCE.get((before, state), frozenset())
    if moved_as not in at_once or version != before_version + 2:
        return [row]
    *_, worker_id = rest
    between, between_version = RunState.ASSIGNED.value, before_version + 1
    return [
        (seq, run_id, before, between, before_version, between_version, moved_as, moved_by, *rest),
        (seq, run_id, between, state, between_version, version, Actor.WORKER, worker_id, *rest),
    ]


class Invariants:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._raw = world.store.raw
        self.runs: dict[int, ObservedRun] = {}
        self.executed_runs: set[int] = set()
        self._held_by_job: Counter[int] = Counter()
        self._held_by_key: Counter[tuple[int, str]] = Counter()
        self._ticks: set[tuple[int, str]] = set()
        self._keys: set[str] = set()
        self._retried: set[int] = set()
        self._changes_seen = 0
        self._rows_seen = 0
        self._leadership = self._last_seen()[0]

    # --- after a commit -------------------------------------------------------------------------

    def after_commit(self, client: "Client", changes: int) -> list[str]:
        """Check every invariant against what this commit changed. Answers the kinds of its moves."""
        lead, last_moved, last_written = self._last_seen()
        self._check_terms(lead)
        self._leadership = lead
        self._check_fencing(client, lead, changes)
        kinds = self._on_changes(lead[0]) if last_moved != self._changes_seen else []
        if last_written != self._rows_seen:
            self._check_handler_rows()
        return kinds

    def is_new_term(self) -> bool:
        """Whether the transaction that is open has taken the lease."""
        return self._last_seen()[0][0] != self._leadership[0]

    def _last_seen(self) -> tuple[LeadershipRow, int, int]:
        """The leadership row, the last recorded change, and the last row of a handler."""
        epoch, holder, expires, last_moved, last_written = self._raw.execute(
            LAST_SEEN_SQL
        ).fetchone()
        return (epoch, holder, expires), last_moved, last_written

    def _check_terms(self, lead: LeadershipRow) -> None:
        """A term begins after the lease of the last one, and its holder does not act as leader any more."""
        before_epoch, before_holder, expires = self._leadership
        if lead[0] == before_epoch:
            if lead[1] not in (before_holder, None):
                self._violated(f"epoch {before_epoch} went from {before_holder} to {lead[1]}")
            return
        if lead[0] != before_epoch + 1:
            self._violated(f"epoch {lead[0]} followed {before_epoch}")
        self._world.coverage["a term began"] += 1
        if before_holder is None:
            return
        self._world.coverage["a lease ran out and another took over"] += 1
        if expires > self._raw.execute("SELECT tsuzuki_now(0)").fetchone()[0]:
            self._violated(f"epoch {lead[0]} began while {before_holder} held its lease")
        if self._is_recent(self._world.database_clock.stepped_at):
            return  # the lease expired earlier than its holder could know
        for node in self._world.nodes:
            term = None if node.is_dead or self._is_excused(node) else node.engine.lease.term
            if term == Term(holder=before_holder, epoch=before_epoch):
                self._violated(f"{node.name} still leads under epoch {before_epoch}")

    def _check_fencing(self, client: "Client", lead: LeadershipRow, changes: int) -> None:
        """Fencing: a write of a leader whose term is over changes nothing."""
        fiber = self._world.scheduler.current
        term = getattr(client, "term", None)
        epoch, holder, _ = lead
        if term is None or fiber is None or fiber.name != "lead":
            return
        if (term.epoch, term.holder) == (epoch, holder):
            return
        self._world.coverage["a deposed leader's write was refused"] += 1
        if term.epoch == epoch and holder is not None:
            self._world.coverage["a write of another holder of the epoch was refused"] += 1
        if changes:
            current = f"the current is {epoch} of {holder}"
            self._violated(f"{client.name} wrote under epoch {term.epoch}; {current}")

    def _on_changes(self, epoch: int) -> list[str]:
        rows = self._raw.execute(CHANGES_SQL, (self._changes_seen,)).fetchall()
        kinds = []
        for row in rows:
            self._changes_seen = row[0]
            if row[2] is None:
                kinds.append(self._on_created(row[1]))
            else:
                kinds.extend(self._on_move(step, epoch) for step in steps_of(row))
        return kinds

    def _on_created(self, run_id: int) -> str:
        job_id, trigger, tick, key, concurrency_key, retry_of = self._raw.execute(
            "SELECT job_definition_id, trigger, scheduled_for, idempotency_key, concurrency_key,"
            " retry_of FROM job_runs WHERE id = ?",
            (run_id,),
        ).fetchone()
        self.runs[run_id] = ObservedRun(job_id=job_id, key=concurrency_key)
        self._world.log(f"run {run_id} of {JOBS[job_id - 1].name} is created by {trigger} ({tick})")
        if trigger == "time":
            self._once(self._ticks, (job_id, tick), f"job {job_id}: a second run of {tick}")
        if key is not None:
            self._once(self._keys, key, f"a second run with the key {key}")
        if retry_of is not None:
            self._once(self._retried, retry_of, f"run {retry_of} is retried twice")
            if not self.runs[retry_of].state.is_final:
                self._violated(f"run {run_id} retries run {retry_of}, which has not ended")
        return f"created by {trigger}"

    def _on_move(self, row: tuple[object, ...], epoch: int) -> str:
        _, run_id, before, state, before_version, version, moved_as, moved_by, *rest = row
        moved_epoch, reason, worker_id = rest
        run = self.runs[run_id]  # type: ignore[index]
        kind = f"{before} -> {state}"
        self._world.log(f"run {run_id}: {kind} by {moved_by} ({reason or worker_id})")
        source, target, actor = RunState(before), RunState(state), Actor(moved_as)
        if (run.state, run.version) != (source, before_version):
            self._violated(f"run {run_id}: {kind}, but it was {run.state} at {run.version}")
        if version != run.version + 1:
            self._violated(f"run {run_id}: version {version} followed {run.version}")
        if actor not in MOVES.get((source, target), frozenset()):
            self._violated(f"run {run_id}: {kind} by the {actor}")
        if actor is Actor.LEADER and moved_epoch != epoch:
            self._violated(f"run {run_id}: {kind} under epoch {moved_epoch}, current is {epoch}")
        if actor is Actor.WORKER and source in HELD and moved_by != run.worker_id:
            self._violated(f"run {run_id}: {kind} by {moved_by}, it is held by {run.worker_id}")
        if actor is Actor.WORKER and source is RunState.RUNNING and moved_epoch != run.epoch:
            self._violated(f"run {run_id}: started under epoch {run.epoch}, ended {moved_epoch}")
        self._check_limits(run, target)
        run.state, run.version = target, version  # type: ignore[assignment]
        run.worker_id = worker_id  # type: ignore[assignment]
        if target is RunState.RUNNING:
            run.epoch = moved_epoch  # type: ignore[assignment]
        self._count(kind, reason)
        if reason == Reason.WORKER_LOST:
            self._check_lost_run(run_id)  # type: ignore[arg-type]
        return kind

    def _check_limits(self, run: ObservedRun, target: RunState) -> None:
        """Assigned and running runs of a job, and of one of its keys, stay within the limits."""
        was, will = run.state in HELD, target in HELD
        if was == will:
            return
        change = 1 if will else -1
        spec = JOBS[run.job_id - 1]
        self._held_by_job[run.job_id] += change
        limit = spec.concurrency_limit
        if limit is not None and self._held_by_job[run.job_id] > limit:
            self._violated(f"{spec.name}: {self._held_by_job[run.job_id]} runs at once")
        if spec.max_concurrent_per_key is None or run.key is None:
            return
        key = (run.job_id, run.key)
        self._held_by_key[key] += change
        if self._held_by_key[key] > spec.max_concurrent_per_key:
            self._violated(f"{spec.name}: {self._held_by_key[key]} runs of {run.key} at once")

    def _check_handler_rows(self) -> None:
        """Every row of a handler was written while its run was RUNNING with this version, worker and epoch."""
        rows = self._raw.execute(
            "SELECT w.id, w.run_id, r.state = 'RUNNING' AND r.version = w.version"
            " AND r.assigned_worker_id = w.worker_id AND r.leader_epoch = w.epoch"
            " FROM sim_rows w JOIN job_runs r ON r.id = w.run_id WHERE w.id > ?",
            (self._rows_seen,),
        ).fetchall()
        for row_id, run_id, is_right in rows:
            self._rows_seen = row_id
            if not is_right:
                self._violated(f"run {run_id} was fenced and wrote a row")

    def _check_lost_run(self, run_id: int) -> None:
        """A run that is failed as lost executes nowhere: its worker has stopped it before."""
        for node in self._world.nodes:
            execution = node.executions.get(run_id)
            if execution is None or execution.is_ended or node.is_dead or self._is_excused(node):
                continue
            self._violated(
                f"run {run_id} was failed as lost, and {node.name} is still executing it"
            )

    # --- reported by a process ------------------------------------------------------------------

    def on_execution(self, node: "Node", task: Task) -> None:
        self._once(self.executed_runs, task.run.id, f"run {task.run.id} is executed twice")

    def on_worker_step(self, node: "Node", step: WorkerStep) -> None:
        """An end that was confirmed to a worker is stored."""
        for task, ending in step.ended:
            if self.runs[task.run.id].state is not ending.state:
                self._violated(f"run {task.run.id}: confirmed {ending.state}, and it is not")
        self._world.coverage["ends and assignments shared a commit"] += bool(step.refilled.assigned)
        self._world.coverage["an end was refused"] += len(step.refused)
        self._world.coverage["a run was found lost"] += len(step.lost)

    def on_crash(self, node: "Node") -> None:
        for execution in node.executions.values():
            run = self.runs[execution.task.run.id]
            if run.state is RunState.RUNNING and not execution.is_ended:
                self._world.coverage["a crash inside RUNNING"] += 1
        if node.engine.lease.term is not None:
            self._world.coverage["a crash while leading"] += 1

    # --- helpers --------------------------------------------------------------------------------

    def _is_excused(self, node: "Node") -> bool:
        """Whether it could not keep its deadlines: it was suspended, or the database's clock stepped while
        it was disconnected and made its silence look longer than it was."""
        if self._is_recent(node.suspended_at) or self._is_recent(self._world.settings_changed_at):
            return True
        has_stepped = self._is_recent(self._world.database_clock.stepped_at)
        return has_stepped and self._is_recent(node.last_fault_at)

    def _is_recent(self, moment: float) -> bool:
        return moment > self._world.scheduler.now - EXCUSED_SECONDS

    def _count(self, kind: str, reason: object) -> None:
        self._world.coverage[kind] += 1
        if reason is not None:
            self._world.coverage[f"{kind}: {reason}"] += 1

    def _once(self, seen: set, what: object, sentence: str) -> None:  # type: ignore[type-arg]
        if what in seen:
            self._violated(sentence)
        seen.add(what)

    def _violated(self, sentence: str) -> None:
        raise InvariantViolated(sentence)
