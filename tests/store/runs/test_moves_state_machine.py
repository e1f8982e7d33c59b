"""Many random lives of runs, lived in the database and in a few lines of Python side by side.

After every step the two must agree, whatever was tried: moves in order, moves out of order, old
versions, old terms, the wrong worker, the wrong epoch.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, select

from support.factories import add_job, add_worker, depose_and_take, new_run, spec
from support.moving_clock import MovingClock
from support.run_model import RunModel, off_by
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, MOVES, Actor, Reason, RunState, may_move
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, progress, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

S = RunState
REASSIGN_AFTER = 5.0
SILENT_AFTER = 10.0
WORKERS = 3
LIVE_MAX = 6
UNKNOWN = 10**9
ENDS = sorted(FINAL_STATES)

EXAMPLES = {"sqlite": 60, "postgresql": 12}
STEPS = 50

serial = count(1)

chances = st.integers(0, 2**32 - 1).map(Random)
"""A die per step: what it shows is spread evenly, where plain strategies would dwell on edges."""


class Lives(RuleBasedStateMachine):
    reached: set[tuple[RunState, RunState, Actor]]

    def __init__(self, database: Database, clock: MovingClock) -> None:
        super().__init__()
        self.database = database
        self.clock = clock

    @initialize(chance=chances)
    def begin(self, chance: Random) -> None:
        """A job, workers and a term of its own, in a database that has seen others; and runs that
        are already on their way, so that whatever is tried first finds something."""
        number = next(serial)
        self.job_id = add_job(self.database, spec(f"job-{number}"))
        self.workers = [add_worker(self.database, f"host-{number}-{n}") for n in range(WORKERS)]
        self.heard = dict.fromkeys(self.workers, self.clock.monotonic())
        self.terms = [depose_and_take(self.database) for _ in range(2)]
        self.lives: dict[int, RunModel] = {}
        self.create(LIVE_MAX)
        for worker in self.workers:
            self.assign(chance, worker)
            self.start(chance)
        self.assign(chance, self.workers[0])
        self.hand_back(chance)

    # --- what every step needs -----------------------------------------------------------------

    def some(self, chance: Random, *hoped_for: RunState, most: int = 4) -> list[RunRef]:
        """Some of the runs: mostly in a state that is hoped for, now and then in another, at a
        version they do not have, or not there at all."""
        hoped = [i for i, life in self.lives.items() if life.state in hoped_for]
        others = [*self.lives, UNKNOWN]
        ids = {
            chance.choice(hoped if hoped and chance.random() < 0.8 else others) for _ in range(most)
        }
        return [RunRef(id=i, version=self.version_of(i) + off_by(chance)) for i in sorted(ids)]

    def version_of(self, run_id: int) -> int:
        return self.lives[run_id].version if run_id in self.lives else 1

    def some_term(self, chance: Random) -> Term:
        return self.terms[-1] if chance.random() < 0.85 else self.terms[-2]

    def worker_of(self, refs: list[RunRef], chance: Random) -> str:
        """A worker that has one of them, or now and then any."""
        having = [self.lives[ref.id].worker for ref in refs if ref.id in self.lives]
        known = [worker for worker in having if worker]
        return chance.choice(known if known and chance.random() < 0.85 else self.workers)

    def count(self, *states: RunState) -> int:
        return sum(life.state in states for life in self.lives.values())

    def is_silent(self, worker: str | None) -> bool:
        return worker is None or self.clock.monotonic() - self.heard[worker] >= SILENT_AFTER

    def holds(self, term: Term) -> bool:
        return term == self.terms[-1]

    def check(
        self,
        refs: list[RunRef],
        may: Callable[[RunModel], bool],
        target: RunState,
        actor: Actor,
        made: Callable[[Connection], Any],
    ) -> list[RunModel]:
        """Make the move in the database, and in the model for whom it should take; the answers
        must be the same. Gives back those that took."""
        expected = {
            ref.id
            for ref in refs
            if ref.id in self.lives
            and self.lives[ref.id].version == ref.version
            and may(self.lives[ref.id])
        }
        with self.database.write() as connection:
            took = set(made(connection))
        assert took == expected
        moved = [self.lives[run_id] for run_id in sorted(took)]
        for life in moved:
            assert may_move(life.state, target, actor)
            life.move(target, actor)
        self.reached |= {life.path[-1] for life in moved}
        return moved

    # --- births, time, workers, terms ---------------------------------------------------------

    @precondition(lambda self: self.count(*LIVE_STATES) < LIVE_MAX)
    @rule()
    def create(self, how_many: int = 3) -> None:
        wanted = [new_run(self.database, self.job_id)] * how_many
        with self.database.write() as connection:
            assert runs.create(connection, wanted, term=self.terms[-2]) == [None] * how_many
            created = runs.create(connection, wanted, term=self.terms[-1])
        for run_id in created:
            assert run_id is not None
            self.lives[run_id] = RunModel()

    @rule(chance=chances)
    def pass_time(self, chance: Random) -> None:
        """Some time later some of the workers are heard, and perhaps another one leads."""
        self.clock.advance(chance.choice([1.0, 4.0, 10.0]))
        for worker in chance.sample(self.workers, chance.randint(0, WORKERS)):
            with self.database.write() as connection:
                workers.heartbeat(connection, worker)
            self.heard[worker] = self.clock.monotonic()
        if chance.random() < 0.2:
            self.terms.append(depose_and_take(self.database))

    # --- the leader ---------------------------------------------------------------------------

    @precondition(lambda self: self.count(S.PENDING, S.ORPHANED))
    @rule(chance=chances)
    def assign(self, chance: Random, worker: str | None = None) -> None:
        under, whom = self.some_term(chance), worker or chance.choice(self.workers)
        if worker is None and chance.random() < 0.2:
            self.assign_and_start(chance, under, whom)
            return
        self.give(
            chance,
            under,
            whom,
            lambda c, refs: moves.assign(
                c, term=under, assignments=[Assignment(run=ref, worker_id=whom) for ref in refs]
            ),
        )

    def assign_and_start(self, chance: Random, under: Term, whom: str) -> None:
        took = self.give(
            chance,
            under,
            whom,
            lambda c, refs: moves.assign_and_start(c, term=under, worker_id=whom, runs=refs),
        )
        for life in took:
            life.move(S.RUNNING, Actor.WORKER)
            life.epoch = under.epoch

    def give(
        self,
        chance: Random,
        under: Term,
        whom: str,
        made: Callable[[Connection, list[RunRef]], Any],
    ) -> list[RunModel]:
        refs = self.some(chance, S.PENDING, S.ORPHANED, most=2)
        orphaned = {i for i, life in self.lives.items() if life.state is S.ORPHANED}
        took = self.check(
            refs,
            lambda life: self.holds(under) and life.state in {S.PENDING, S.ORPHANED},
            S.ASSIGNED,
            Actor.LEADER,
            lambda c: made(c, refs),
        )
        again = [self.lives[i] for i in orphaned]
        for life in took:
            life.worker = whom
            life.assigned_at = self.clock.monotonic()
            life.attempt += any(life is other for other in again)
        return took

    @precondition(lambda self: self.count(S.ASSIGNED))
    @rule(chance=chances)
    def orphan(self, chance: Random) -> None:
        refs, under = self.some(chance, S.ASSIGNED), self.some_term(chance)
        lost_alone = chance.choice([[], self.workers])
        now = self.clock.monotonic()
        took = self.check(
            refs,
            lambda life: (
                self.holds(under)
                and life.state is S.ASSIGNED
                and now - life.assigned_at >= REASSIGN_AFTER
                and self.is_silent(life.worker)
            ),
            S.ORPHANED,
            Actor.LEADER,
            lambda c: moves.orphan(
                c,
                term=under,
                runs=refs,
                reassign_after_seconds=REASSIGN_AFTER,
                silent_after_seconds=SILENT_AFTER,
                lost_alone=lost_alone,
            ),
        )
        for life in took:
            life.orphans += 1
            life.orphans_free += life.worker not in lost_alone

    @precondition(lambda self: self.count(S.RUNNING))
    @rule(chance=chances)
    def fail_lost(self, chance: Random) -> None:
        refs, under = self.some(chance, S.RUNNING), self.some_term(chance)
        self.check(
            refs,
            lambda life: (
                self.holds(under) and life.state is S.RUNNING and self.is_silent(life.worker)
            ),
            S.FAILED,
            Actor.LEADER,
            lambda c: moves.fail_lost(c, term=under, runs=refs, silent_after_seconds=SILENT_AFTER),
        )

    @precondition(lambda self: self.count(S.ORPHANED))
    @rule(chance=chances)
    def fail_orphaned(self, chance: Random) -> None:
        refs, under = self.some(chance, S.ORPHANED), self.some_term(chance)
        limit = chance.choice([0, 1])
        self.check(
            refs,
            lambda life: (
                self.holds(under)
                and life.state is S.ORPHANED
                and life.orphans - life.orphans_free >= limit
            ),
            S.FAILED,
            Actor.LEADER,
            lambda c: moves.fail_orphaned(c, term=under, runs=refs, max_orphans=limit),
        )

    # --- the worker ---------------------------------------------------------------------------

    @precondition(lambda self: self.count(S.ASSIGNED))
    @rule(chance=chances)
    def start(self, chance: Random) -> None:
        refs = self.some(chance, S.ASSIGNED, most=4)
        me = self.worker_of(refs, chance)
        took = self.check(
            refs,
            lambda life: life.state is S.ASSIGNED and life.worker == me,
            S.RUNNING,
            Actor.WORKER,
            lambda c: moves.start(c, worker_id=me, runs=refs),
        )
        for life in took:
            life.epoch = self.terms[-1].epoch

    def started(self, refs: list[RunRef], epoch_off: int) -> list[StartedRun]:
        known = [(ref, self.lives.get(ref.id, RunModel()).epoch or 0) for ref in refs]
        return [
            StartedRun(id=ref.id, version=ref.version, epoch=epoch + epoch_off)
            for ref, epoch in known
        ]

    @precondition(lambda self: self.count(S.RUNNING))
    @rule(chance=chances)
    def finish(self, chance: Random) -> None:
        refs = self.some(chance, S.RUNNING, most=2)
        me, end, epoch_off = self.worker_of(refs, chance), chance.choice(ENDS), off_by(chance)
        reason = None if end is S.SUCCEEDED else Reason.HANDLER_FAILED
        ends = [RunEnd(run=run, state=end, reason=reason) for run in self.started(refs, epoch_off)]
        self.check(
            refs,
            lambda life: life.state is S.RUNNING and life.worker == me and not epoch_off,
            end,
            Actor.WORKER,
            lambda c: moves.finish(c, worker_id=me, ends=ends),
        )

    @precondition(lambda self: self.count(S.ASSIGNED))
    @rule(chance=chances)
    def hand_back(self, chance: Random) -> None:
        refs = self.some(chance, S.ASSIGNED, most=2)
        me = self.worker_of(refs, chance)
        took = self.check(
            refs,
            lambda life: life.state is S.ASSIGNED and life.worker == me,
            S.ORPHANED,
            Actor.WORKER,
            lambda c: moves.hand_back(c, worker_id=me, runs=refs),
        )
        for life in took:
            life.orphans += 1
            life.orphans_free += 1

    @precondition(lambda self: self.count(S.RUNNING))
    @rule(chance=chances)
    def report_progress(self, chance: Random) -> None:
        refs = self.some(chance, S.RUNNING)
        me, processed, epoch_off = (
            self.worker_of(refs, chance),
            chance.randrange(2**40),
            off_by(chance),
        )
        reports = [
            progress.ProgressReport(run=run, processed=processed, total=None, number=next(serial))
            for run in self.started(refs, epoch_off)
        ]
        with self.database.write() as connection:
            took = progress.report_progress(connection, worker_id=me, reports=reports)
        expected = set()
        for ref in refs:
            life = self.lives.get(ref.id, RunModel())
            ours = life.state is S.RUNNING and life.worker == me and not epoch_off
            if ours and life.version == ref.version:
                expected.add(ref.id)
                life.processed = processed
        assert took == expected

    # --- an early end, while others live on -----------------------------------------------------

    @precondition(lambda self: self.count(*LIVE_STATES) > LIVE_MAX // 2)
    @rule(chance=chances)
    def end_early(self, chance: Random) -> None:
        state = chance.choice([state for state in sorted(LIVE_STATES) if self.count(state)])
        refs, under = self.some(chance, state, most=1), self.some_term(chance)
        how = chance.choice(["skip", "replace", "cancel"])

        def made(connection: Connection) -> frozenset[int]:
            if how == "skip":
                return moves.skip(connection, term=under, runs=refs, reason=Reason.OVERLAP)
            if how == "replace":
                return moves.replace(connection, term=under, runs=refs)
            return moves.cancel(connection, operator="ada", runs=refs)

        states = {S.PENDING, S.ORPHANED} if how == "skip" else LIVE_STATES
        self.check(
            refs,
            lambda life: life.state in states and (how == "cancel" or self.holds(under)),
            S.CANCELED,
            Actor.OPERATOR if how == "cancel" else Actor.LEADER,
            made,
        )

    # --- what must always be so ---------------------------------------------------------------

    @invariant()
    def the_database_equals_the_model(self) -> None:
        columns = (
            "state version assigned_worker_id leader_epoch attempt orphan_count orphans_free"
            " progress_processed"
        )
        statement = select(job_runs.c.id, *(job_runs.c[name] for name in columns.split()))
        with self.database.read() as connection:
            rows = connection.execute(statement.where(job_runs.c.job_definition_id == self.job_id))
            found = {row[0]: tuple(row[1:]) for row in rows}
        assert found == {run_id: life.row() for run_id, life in self.lives.items()}

    def teardown(self) -> None:
        """The history is a chain: version by version, each move from where the last one led."""
        for run_id, life in getattr(self, "lives", {}).items():
            with self.database.read() as connection:
                history = runs.history(connection, run_id)
            assert [line.version for line in history] == list(range(2, life.version + 1))
            path = [(line.from_state, line.to_state, line.actor) for line in history]
            assert path == life.path
            places = [S.PENDING] + [line.to_state for line in history]
            assert [line.from_state for line in history] == places[:-1]
            assert sum(line.to_state in FINAL_STATES for line in history) <= 1


@contextmanager
def independent_of_loaded_modules() -> Iterator[None]:
    """Hypothesis also draws numbers that stand in the source of our modules that are loaded: others in a whole run
    than in a run of this file, even if derandomized."""
    providers.CONSTANTS_CACHE.cache.clear()
    with patch.object(providers, "_get_local_constants", Constants):
        yield
    providers.CONSTANTS_CACHE.cache.clear()


def test_the_store_and_a_model_of_it_live_the_same_lives(
    database: Database, clock: MovingClock
) -> None:
    Lives.reached = set()
    with independent_of_loaded_modules():
        run_state_machine_as_test(
            lambda: Lives(database, clock),
            settings=settings(
                max_examples=EXAMPLES[database.engine.dialect.name],
                stateful_step_count=STEPS,
                database=None,
                derandomize=True,  # the same lives every time: what they reach is part of the test
                suppress_health_check=list(HealthCheck),
            ),
        )
    if database.is_sqlite:  # on PostgreSQL the lives are fewer
        assert {move[:2] for move in Lives.reached} == set(MOVES)
