"""Invariants, checked after every commit against the changes that the store's triggers have recorded.

They keep a model of all runs beside the database, moved only by recorded changes. So a check costs one query
however many runs there are, and no more than that if the commit moved no run and wrote no row.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulation.bulk_cancels import WAITING_ONLY
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
LOSSES = frozenset({Reason.WORKER_LOST, Reason.NOT_CONFIRMED})
EXCUSED_SECONDS = 12.0
"""So long after a fault it still excuses a missed deadline: longer than any timeout of the engine."""

FIRST_READING_SECONDS = 2.0
"""By then a process that has started has read the database's clock."""


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
    " (SELECT coalesce(max(id), 0) FROM sim_rows),"
    " (SELECT max(seq) FROM sim_definitions) FROM tsuzuki_leadership"
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
        self.moves: list[tuple[int, int, str]] = []
        """The run, version and new state of every move, in the order of commits."""
        self.executed_runs: set[int] = set()
        self.frozen_runs: set[int] = set()
        """Covered by a bulk cancel that is confirmed: they are not assigned any more."""
        self._held_by_job: Counter[str] = Counter()
        self._held_by_key: Counter[tuple[str, str]] = Counter()
        self._ticks: set[tuple[int, str]] = set()
        self._keys: set[str] = set()
        self._retried: set[int] = set()
        self._changes_seen = 0
        self._rows_seen = 0
        self._leadership, *_, self._definitions_seen = self._last_seen()
        self._term_began_at = 0.0

    # --- after a commit -------------------------------------------------------------------------

    def after_commit(self, client: "Client", changes: int) -> list[str]:
        """Check every invariant against what this commit changed. Answers the kinds of its moves."""
        lead, last_moved, last_written, last_defined = self._last_seen()
        if last_defined != self._definitions_seen:
            self._definitions_seen = last_defined
            self._world.definitions.read_changes()
        self._check_terms(lead)
        self._leadership = lead
        self._check_fencing(client, lead, changes)
        kinds = self._on_changes(lead[0]) if last_moved != self._changes_seen else []
        if last_written != self._rows_seen:
            self._check_handler_rows()
        self._world.promises.check()
        return kinds

    def read_changes(self) -> None:
        """After a commit of the simulation itself, which is no client."""
        self._world.definitions.read_changes()
        self._on_changes(self._leadership[0])

    def has_moved(self) -> bool:
        """Whether the transaction that is open has created or moved a run."""
        return self._last_seen()[1] != self._changes_seen

    def is_new_term(self) -> bool:
        """Whether the transaction that is open has taken the lease."""
        return self._last_seen()[0][0] != self._leadership[0]

    def _last_seen(self) -> tuple[LeadershipRow, int, int, int]:
        """The leadership row, the last recorded change, the last row of a handler, and the last change of a job."""
        epoch, holder, expires, *last = self._raw.execute(LAST_SEEN_SQL).fetchone()
        last_moved, last_written, last_defined = last
        return (epoch, holder, expires), last_moved, last_written, last_defined

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
        self._term_began_at = self._world.scheduler.now
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
            " retry_of FROM tsuzuki_job_runs WHERE id = ?",
            (run_id,),
        ).fetchone()
        self.runs[run_id] = ObservedRun(job_id=job_id, key=concurrency_key)
        name = self._world.definitions.name(job_id)
        self._world.log(f"run {run_id} of {name} is created by {trigger} ({tick})")
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
        self.moves.append((run_id, version, state))  # type: ignore[arg-type]
        run.worker_id = worker_id  # type: ignore[assignment]
        if target is RunState.RUNNING:
            run.epoch = moved_epoch  # type: ignore[assignment]
        if target is RunState.ASSIGNED:
            self._check_assigned(run_id, run)  # type: ignore[arg-type]
        if source is RunState.RUNNING and moved_by == WAITING_ONLY:
            self._violated(f"run {run_id} was RUNNING, and canceled among those that wait")
        self._count(kind, reason)
        self._check_lost_run(run_id, reason)  # type: ignore[arg-type]
        return kind

    def _check_limits(self, run: ObservedRun, target: RunState) -> None:
        """Assigned and running runs of a job, and of one of its keys, stay within the limits, by its name: they hold
        for a job that was removed and added again."""
        was, will = run.state in HELD, target in HELD
        if was == will:
            return
        change = 1 if will else -1
        spec = self._world.definitions.specs[run.job_id]
        self._held_by_job[spec.name] += change
        limit = spec.concurrency_limit
        if limit is not None and self._held_by_job[spec.name] > limit:
            self._violated(f"{spec.name}: {self._held_by_job[spec.name]} runs at once")
        if spec.max_concurrent_per_key is None or run.key is None:
            return
        key = (spec.name, run.key)
        self._held_by_key[key] += change
        if self._held_by_key[key] > spec.max_concurrent_per_key:
            self._violated(f"{spec.name}: {self._held_by_key[key]} runs of {run.key} at once")

    def _check_handler_rows(self) -> None:
        """Every row of a handler was written while its run was RUNNING with this version, worker and epoch. The
        progress that was reported before is in the same commit."""
        rows = self._raw.execute(
            "SELECT w.id, w.run_id, r.state = 'RUNNING' AND r.version = w.version"
            " AND r.assigned_worker_id = w.worker_id AND r.leader_epoch = w.epoch,"
            " w.page, coalesce(r.progress_processed, -1)"
            " FROM sim_rows w JOIN tsuzuki_job_runs r ON r.id = w.run_id WHERE w.id > ?",
            (self._rows_seen,),
        ).fetchall()
        for row_id, run_id, is_right, page, processed in rows:
            self._rows_seen = row_id
            if not is_right:
                self._violated(f"run {run_id} was fenced and wrote a row")
            if self._world.scenario.reports_often and processed < page:
                self._violated(f"page {page} of run {run_id} has the progress {processed}")

    def _check_lost_run(self, run_id: int, reason: Reason | None) -> None:
        """No run is lost without a fault. A run that is failed as lost executes nowhere: its worker has stopped it
        before."""
        if reason in LOSSES and self._world.scenario.is_peaceful:
            self._violated(f"run {run_id} was lost without a fault: {reason}")
        if reason != Reason.WORKER_LOST:
            return
        for node in self._world.nodes:
            execution = node.executions.get(run_id)
            if execution is None or execution.is_ended:
                continue
            if node.is_dead:
                if self._world.scheduler.now < node.commands_end_at:
                    self._violated(f"run {run_id} was failed as lost, and its command still runs")
                continue
            if self._is_recent(node.suspended_at):
                self._world.promises.stop_lost(node, execution)
            if self._is_excused(node):
                continue
            if self._may_have_missed_step():
                continue
            self._violated(
                f"run {run_id} was failed as lost, and {node.name} is still executing it"
            )

    def led_since(self) -> float:
        """Since when the current leader leads; infinite if none does."""
        leads = any(n.engine.lease.term is not None for n in self._world.nodes if not n.is_dead)
        return self._term_began_at if leads else float("inf")

    def is_executed(self, run_id: int) -> bool:
        """Whether a handler of this run goes on anywhere."""
        found = [
            n.executions[run_id]
            for n in self._world.nodes
            if not n.is_dead and run_id in n.executions
        ]
        return any(not execution.is_ended for execution in found)

    def is_running(self, run_id: int) -> bool:
        return self.runs[run_id].state is RunState.RUNNING

    def _check_assigned(self, run_id: int, run: ObservedRun) -> None:
        """A run is assigned only to a worker that may have it, and not after a bulk cancel that covers it."""
        spec = self._world.definitions.specs[run.job_id]
        node = self._world.workers[run.worker_id or ""]
        if run_id in self.frozen_runs:
            self._violated(f"run {run_id} was assigned after its bulk cancel was confirmed")
        needed = spec.options.get("program") if self._world.scenario.programs else None
        has_program = needed in (None, node.program)
        may_have = node.only_job in (None, spec.name) and spec.tags <= node.role.tags
        if not (may_have and has_program):
            self._violated(f"{node.name} may not have a run of {spec.name}")
        if node.name in self._world.recorded_deaths:
            self._violated(f"{node.name} was recorded as dead, and gets run {run_id}")
        if node.only_run not in (None, run_id):
            self._violated(f"{node.name} may have no other run than {node.only_run}")

    # --- reported by a process ------------------------------------------------------------------

    def on_execution(self, node: "Node", task: Task) -> None:
        self._once(self.executed_runs, task.run.id, f"run {task.run.id} is executed twice")
        self._world.coverage["a foreground engine executed a run"] += node.only_job is not None

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
        """Whether it could not keep its deadlines: it was suspended, or they were changed."""
        return self._is_recent(node.suspended_at) or self._is_recent(
            self._world.settings_changed_at
        )

    def _may_have_missed_step(self) -> bool:
        """Whether the process that acts now may not have read the database's clock before that stepped."""
        acting = self._world.scheduler.current
        started_at = max(
            (node.started_at for node in self._world.nodes if acting and node is acting.owner),
            default=0.0,
        )
        return started_at + FIRST_READING_SECONDS > self._world.database_clock.stepped_at > 0.0

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
