"""The laws, held after every commit against what the store's witness saw.

It keeps a small picture of all runs beside the database, moved only by what was witnessed, so that a look costs one
query however many runs there are, and only that one where no run was moved and no row written.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulation.jobs import JOBS
from simulation.reach import LawBroken
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.states import MOVES, MOVES_AT_ONCE, Actor, Reason, RunState

if TYPE_CHECKING:
    from simulation.node import Node
    from simulation.party import Party
    from simulation.world import World

HELD = frozenset({RunState.ASSIGNED, RunState.RUNNING})
SETTLED_AFTER_SECONDS = 12.0
"""So long after a trouble nothing is excused by it any more: longer than any silence is waited for."""


@dataclass
class Life:
    """A run as witnessed."""

    job_id: int
    key: str | None
    state: RunState = RunState.PENDING
    version: int = 1
    worker_id: str | None = None
    epoch: int | None = None


Lead = tuple[int, str | None, str]
"""Epoch, holder, and the end of the lease."""

LOOK = (
    "SELECT epoch, holder, lease_expires_at, (SELECT coalesce(max(seq), 0) FROM sim_witness),"
    " (SELECT coalesce(max(id), 0) FROM sim_rows) FROM leadership"
)
WITNESSED = (
    "SELECT seq, run_id, before_state, state, before_version, version, moved_as, moved_by,"
    " epoch, reason, worker_id FROM sim_witness WHERE seq > ? ORDER BY seq"
)


def steps_of(row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The moves that a change of a run stands for: two if it is a legal one of those made at once."""
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


class Laws:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._raw = world.store.raw
        self.lives: dict[int, Life] = {}
        self.begun_runs: set[int] = set()
        self._held_by_job: Counter[int] = Counter()
        self._held_by_key: Counter[tuple[int, str]] = Counter()
        self._ticks: set[tuple[int, str]] = set()
        self._keys: set[str] = set()
        self._repeated: set[int] = set()
        self._witnessed = 0
        self._rows_seen = 0
        self._lead = self._look()[0]

    # --- after a commit -------------------------------------------------------------------------

    def after_commit(self, party: "Party", changes: int) -> list[str]:
        """Hold every law against what this commit changed; answers the kinds of moves in it."""
        lead, last_moved, last_written = self._look()
        self._law_of_terms(lead)
        self._lead = lead
        self._law_of_the_fence(party, lead[0], changes)
        kinds = self._moves(lead[0]) if last_moved != self._witnessed else []
        if last_written != self._rows_seen:
            self._law_of_rows()
        return kinds

    def _look(self) -> tuple[Lead, int, int]:
        """Who leads, the last move that was witnessed, and the last row of a handler."""
        epoch, holder, expires, last_moved, last_written = self._raw.execute(LOOK).fetchone()
        return (epoch, holder, expires), last_moved, last_written

    def _law_of_terms(self, lead: Lead) -> None:
        """A term begins after the last one is over, and who held it has stopped believing in it."""
        before_epoch, before_holder, expires = self._lead
        if lead[0] == before_epoch:
            if lead[1] not in (before_holder, None):
                self._broken(f"epoch {before_epoch} went from {before_holder} to {lead[1]}")
            return
        if lead[0] != before_epoch + 1:
            self._broken(f"epoch {lead[0]} followed {before_epoch}")
        self._world.reached["a term began"] += 1
        if before_holder is None:
            return
        self._world.reached["a lease ran out and another took over"] += 1
        if expires > self._raw.execute("SELECT tsuzuki_now(0)").fetchone()[0]:
            self._broken(f"epoch {lead[0]} began while {before_holder} held its lease")
        if self._is_recent(self._world.database_clock.stepped_at):
            return  # the lease was over sooner than anybody could know
        for node in self._world.nodes:
            term = None if node.is_dead or self._is_excused(node) else node.engine.lease.term
            if term is not None and term.epoch == before_epoch:
                self._broken(f"{node.name} still believes in epoch {before_epoch}")

    def _law_of_the_fence(self, party: "Party", epoch: int, changes: int) -> None:
        """What is written by a leader whose term is over changes nothing at all."""
        fiber = self._world.turns.current
        term = getattr(party, "term", None)
        if term is None or fiber is None or fiber.name != "lead" or term.epoch == epoch:
            return
        self._world.reached["a deposed leader's write was refused"] += 1
        if changes:
            self._broken(f"{party.name} wrote under epoch {term.epoch}; the current is {epoch}")

    def _moves(self, epoch: int) -> list[str]:
        rows = self._raw.execute(WITNESSED, (self._witnessed,)).fetchall()
        kinds = []
        for row in rows:
            self._witnessed = row[0]
            if row[2] is None:
                kinds.append(self._birth(row[1]))
            else:
                kinds.extend(self._move(step, epoch) for step in steps_of(row))
        return kinds

    def _birth(self, run_id: int) -> str:
        job_id, trigger, tick, key, concurrency_key, retry_of = self._raw.execute(
            "SELECT job_definition_id, trigger, scheduled_for, idempotency_key, concurrency_key,"
            " retry_of FROM job_runs WHERE id = ?",
            (run_id,),
        ).fetchone()
        self.lives[run_id] = Life(job_id=job_id, key=concurrency_key)
        self._world.tell(f"run {run_id} of {JOBS[job_id - 1].name} is born by {trigger} ({tick})")
        if trigger == "time":
            self._once(self._ticks, (job_id, tick), f"job {job_id}: a second run of {tick}")
        if key is not None:
            self._once(self._keys, key, f"a second run with the key {key}")
        if retry_of is not None:
            self._once(self._repeated, retry_of, f"run {retry_of} is repeated twice")
            if not self.lives[retry_of].state.is_final:
                self._broken(f"run {run_id} repeats run {retry_of}, which has not ended")
        return f"born by {trigger}"

    def _move(self, row: tuple[object, ...], epoch: int) -> str:
        _, run_id, before, state, before_version, version, moved_as, moved_by, *rest = row
        moved_epoch, reason, worker_id = rest
        life = self.lives[run_id]  # type: ignore[index]
        kind = f"{before} -> {state}"
        self._world.tell(f"run {run_id}: {kind} by {moved_by} ({reason or worker_id})")
        source, target, actor = RunState(before), RunState(state), Actor(moved_as)
        if (life.state, life.version) != (source, before_version):
            self._broken(f"run {run_id}: {kind}, but it was {life.state} at {life.version}")
        if version != life.version + 1:
            self._broken(f"run {run_id}: version {version} followed {life.version}")
        if actor not in MOVES.get((source, target), frozenset()):
            self._broken(f"run {run_id}: {kind} by the {actor}")
        if actor is Actor.LEADER and moved_epoch != epoch:
            self._broken(f"run {run_id}: {kind} under epoch {moved_epoch}, current is {epoch}")
        if actor is Actor.WORKER and source in HELD and moved_by != life.worker_id:
            self._broken(f"run {run_id}: {kind} by {moved_by}, it is held by {life.worker_id}")
        if actor is Actor.WORKER and source is RunState.RUNNING and moved_epoch != life.epoch:
            self._broken(f"run {run_id}: begun under epoch {life.epoch}, ended {moved_epoch}")
        self._hold(life, target)
        life.state, life.version = target, version  # type: ignore[assignment]
        life.worker_id = worker_id  # type: ignore[assignment]
        if target is RunState.RUNNING:
            life.epoch = moved_epoch  # type: ignore[assignment]
        self._count(kind, reason)
        if reason == Reason.WORKER_LOST:
            self._law_of_giving_up(run_id)  # type: ignore[arg-type]
        return kind

    def _hold(self, life: Life, target: RunState) -> None:
        """Live runs of a job, and of a key of it, stay within the limits."""
        was, will = life.state in HELD, target in HELD
        if was == will:
            return
        change = 1 if will else -1
        spec = JOBS[life.job_id - 1]
        self._held_by_job[life.job_id] += change
        limit = spec.concurrency_limit
        if limit is not None and self._held_by_job[life.job_id] > limit:
            self._broken(f"{spec.name}: {self._held_by_job[life.job_id]} runs at once")
        if spec.max_concurrent_per_key is None or life.key is None:
            return
        key = (life.job_id, life.key)
        self._held_by_key[key] += change
        if self._held_by_key[key] > spec.max_concurrent_per_key:
            self._broken(f"{spec.name}: {self._held_by_key[key]} runs of {life.key} at once")

    def _law_of_rows(self) -> None:
        """Every row of a handler was written by the run that was held as it says, at that moment."""
        rows = self._raw.execute(
            "SELECT w.id, w.run_id, r.state = 'RUNNING' AND r.version = w.version"
            " AND r.assigned_worker_id = w.worker_id AND r.leader_epoch = w.epoch"
            " FROM sim_rows w JOIN job_runs r ON r.id = w.run_id WHERE w.id > ?",
            (self._rows_seen,),
        ).fetchall()
        for row_id, run_id, is_right in rows:
            self._rows_seen = row_id
            if not is_right:
                self._broken(f"run {run_id} was fenced off and wrote a row")

    def _law_of_giving_up(self, run_id: int) -> None:
        """A run that is given up on is not running any more: its worker stopped it before that."""
        for node in self._world.nodes:
            execution = node.executions.get(run_id)
            if execution is None or execution.is_ended or node.is_dead or self._is_excused(node):
                continue
            self._broken(f"run {run_id} was given up, and {node.name} is still executing it")

    # --- what a process says --------------------------------------------------------------------

    def begun(self, node: "Node", task: Task) -> None:
        self._once(self.begun_runs, task.run.id, f"run {task.run.id} is executed twice")

    def told_of_work(self, node: "Node", worked: WorkerStep) -> None:
        """An end that was confirmed to a worker is the end."""
        for task, ending in worked.ended:
            if self.lives[task.run.id].state is not ending.state:
                self._broken(f"run {task.run.id}: confirmed {ending.state}, and it is not")
        self._world.reached["an end was refused"] += len(worked.refused)
        self._world.reached["a run was found lost"] += len(worked.lost)

    def crashed(self, node: "Node") -> None:
        for execution in node.executions.values():
            life = self.lives[execution.task.run.id]
            if life.state is RunState.RUNNING and not execution.is_ended:
                self._world.reached["a crash inside RUNNING"] += 1
        if node.engine.lease.term is not None:
            self._world.reached["a crash while leading"] += 1

    # --- in general -----------------------------------------------------------------------------

    def _is_excused(self, node: "Node") -> bool:
        """Whether it did not run all the time, so that no deadline of its own could be kept; or the
        database's clock jumped while it had trouble, and made its silence look longer than it was."""
        if self._is_recent(node.held_up_at) or self._is_recent(self._world.settings_changed_at):
            return True
        has_stepped = self._is_recent(self._world.database_clock.stepped_at)
        return has_stepped and self._is_recent(node.troubled_at)

    def _is_recent(self, moment: float) -> bool:
        return moment > self._world.turns.now - SETTLED_AFTER_SECONDS

    def _count(self, kind: str, reason: object) -> None:
        self._world.reached[kind] += 1
        if reason is not None:
            self._world.reached[f"{kind}: {reason}"] += 1

    def _once(self, seen: set, what: object, sentence: str) -> None:  # type: ignore[type-arg]
        if what in seen:
            self._broken(sentence)
        seen.add(what)

    def _broken(self, sentence: str) -> None:
        raise LawBroken(sentence)
