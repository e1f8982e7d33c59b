"""Runs that a leader assigns to the worker of its own process start in the same transaction, and execute once."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    new_run,
    read_run,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecutor
from support.statement_recorder import recorded
from support.threads import in_background
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.leader import PAUSE_AFTER_FIRST_SECONDS, Leader
from tsuzuki.engine.worker.identity import WorkerIdentity
from tsuzuki.engine.worker.worker import RECONCILE_SECONDS, Worker
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store import events, jobs, workers
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Database

T = TypeVar("T")
ME = WorkerIdentity(
    id=WORKER, host="host", pid=1, capacity=3, tags=frozenset(), software_version="test"
)


class House:
    """A leader and a worker under one roof, on a database that can fail."""

    def __init__(self, database: Database, clock: MovingClock) -> None:
        self.truth = database
        self.clock = clock
        self.door = UnreliableDatabase(database)
        self.executor = ScriptedExecutor()
        self.woken = 0
        self.term = take_lead(database, lease_seconds=1_000_000)
        self.worker = Worker(
            identity=ME,
            database=self.door,
            executor=self.executor,
            clock=clock,
            random=Random(1),
            settings=EngineSettings,
            wake=self._wake,
            leads_here=lambda: True,
        )
        self.worker.register()
        self.assigner = Assigner(database=self.door, local_worker=self.worker)
        self.job_id = add_job(database, spec("free", concurrency_policy=ConcurrencyPolicy.ALLOW))

    def _wake(self) -> None:
        self.woken += 1

    def lead(self) -> int:
        return self.assigner.tick(self.term)

    def state(self, run_id: int) -> RunState:
        state: RunState = read_run(self.truth, run_id).state
        return state

    def wanted(self) -> RunRef:
        run: RunRef = create_run(self.truth, self.job_id)
        return run

    def know_the_job(self) -> None:
        """From a run of it that has ended."""
        self.wanted()
        self.lead()
        self.adopt()
        self.executor.last.succeed()
        self.worker.tick(poll=False)
        self.executor.begun.clear()
        self.woken = 0

    def adopt(self) -> list[int]:
        """What the worker's own thread does with its queue."""
        return [task.run.id for task in self.worker._adopt()]

    def executed(self) -> list[int]:
        return [execution.task.run.id for execution in self.executor.begun]


@pytest.fixture
def house(database: Database, clock: MovingClock) -> Iterator[House]:
    yield House(database, clock)
    check_history(database)


def meanwhile(house: House, act: Callable[[], T]) -> "list[Future[T]]":
    """`act` between the leader's next commit and its answer, for which it has to wait."""
    acts: list[Future[T]] = []

    def begin() -> None:
        acts.append(in_background(act))
        with pytest.raises(TimeoutError):
            acts[0].result(0.2)

    house.door.after_commit.append(begin)
    return acts


def test_one_transaction_gives_and_begins(house: House) -> None:
    run_id = house.wanted().id
    assert house.lead() == 1
    run = read_run(house.truth, run_id)
    assert (run.state, run.version, run.leader_epoch) == (RunState.RUNNING, 3, house.term.epoch)
    # Starting a handler may take its time, and must not hold up the leader's thread.
    assert house.executed() == []
    assert house.woken == 1
    assert (house.worker.running, house.worker.free) == (1, 2)
    house.adopt()
    task = house.executor.last.task
    assert (task.run.id, task.started.version, task.spec.name) == (run_id, 3, "free")
    assert house.executed() == [run_id]
    assert house.adopt() == []
    house.executor.last.succeed()
    house.worker.tick(poll=False)
    assert house.state(run_id) is RunState.SUCCEEDED
    assert house.worker.running == 0


def test_from_the_look_to_the_start_it_is_three_statements(house: House) -> None:
    house.wanted()
    house.lead()  # which also learns about the job
    house.wanted()
    with recorded(house.truth) as statements:
        assert house.lead() == 1
    assert len(statements) == 3, statements


def test_the_first_run_needs_two_statements(house: House) -> None:
    house.wanted()
    house.lead()  # which also learns about the job
    run_id = house.wanted().id
    with recorded(house.truth) as statements:
        assert house.assigner.assign_first(house.term) == 1
    assert len(statements) == 2, statements
    assert house.state(run_id) is RunState.RUNNING
    house.adopt()
    assert run_id in house.executed()


def test_an_idle_leader_that_is_woken_assigns_the_first_run_before_it_polls(house: House) -> None:
    leader = Leader.with_all_duties(
        database=house.door,
        settings=EngineSettings,
        random=Random(1),
        coordination=NoCoordination(),
        local_worker=house.worker,
    )
    leader._assigner = house.assigner
    house.know_the_job()
    leader.tick(house.term)
    run_id = house.wanted().id
    led = leader.tick(house.term, woken=True)
    assert (led.assigned, led.seconds_to_next) == (1, PAUSE_AFTER_FIRST_SECONDS)
    assert house.woken == 1
    assert house.adopt() == [run_id]


def test_the_first_is_the_most_urgent_and_the_others_are_left(house: House) -> None:
    house.know_the_job()
    later = house.wanted().id
    with house.truth.write() as connection:
        urgent = new_run(house.truth, house.job_id, priority=5)
        (first,) = runs.create(connection, [urgent])
    assert house.assigner.assign_first(house.term) == 1
    assert [house.state(first or 0), house.state(later)] == [RunState.RUNNING, RunState.PENDING]
    assert house.lead() == 1


def test_a_first_whose_job_is_not_known_is_left_to_a_whole_round(house: House) -> None:
    run_id = house.wanted().id
    assert house.assigner.assign_first(house.term) == 0
    assert (house.lead(), house.state(run_id)) == (1, RunState.RUNNING)


def test_a_first_that_an_event_caused_brings_its_payload(house: House) -> None:
    house.know_the_job()
    with house.truth.write() as connection:
        event, _ = events.emit(connection, event_type="x", payload={"n": 1})
        caused = new_run(house.truth, house.job_id, event_id=event.id)
        runs.create(connection, [caused])
    assert house.assigner.assign_first(house.term) == 1
    house.adopt()
    assert house.executor.last.task.event == {"n": 1}


def test_a_first_that_another_gets_is_assigned_to_it(house: House) -> None:
    house.know_the_job()
    first = house.wanted().id
    house.lead()
    add_worker(house.truth, "other", capacity=100)
    run_id = house.wanted().id
    assert house.assigner.assign_first(house.term) == 1
    given = read_run(house.truth, run_id)
    assert (given.state, given.assigned_worker_id) == (RunState.ASSIGNED, "other")
    assert house.state(first) is RunState.RUNNING


def test_a_first_that_cannot_be_given_out_is_left(house: House) -> None:
    assert house.assigner.assign_first(house.term) == 0
    house.know_the_job()
    with house.truth.write() as connection:
        job = jobs.get(connection, house.job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=replace(job.spec, enabled=False))
    run_id = house.wanted().id
    house.lead()  # which learns of the change
    assert house.assigner.assign_first(house.term) == 0
    assert house.state(run_id) is RunState.PENDING


def test_a_leader_whose_term_is_over_gives_nothing_out(house: House) -> None:
    house.know_the_job()
    run_id = house.wanted().id
    depose_and_take(house.truth)
    assert house.assigner.assign_first(house.term) == 0
    assert (house.state(run_id), house.executed()) == (RunState.PENDING, [])


def test_others_get_theirs_as_ever(house: House) -> None:
    add_worker(house.truth, "other", capacity=3)
    ids = [house.wanted().id for _ in range(4)]
    assert house.lead() == 4
    states = sorted(house.state(run_id) for run_id in ids)
    assert states == [RunState.ASSIGNED] * 2 + [RunState.RUNNING] * 2
    house.adopt()
    assert len(house.executed()) == 2


def test_an_answer_that_was_lost_is_read_back_and_the_run_executed_once(house: House) -> None:
    run_id = house.wanted().id
    house.door.replies_to_lose = 1
    with pytest.raises(Unreachable):
        house.lead()
    assert house.state(run_id) is RunState.RUNNING
    assert house.executed() == house.adopt() == []
    assert house.woken == 1, "nobody else would tell it"
    assert [task.run.id for task in house.worker.tick(poll=False).started] == [run_id]
    house.worker.tick()
    assert house.executed() == [run_id]


def test_adopting_runs_does_not_count_as_a_check_of_ownership(house: House) -> None:
    """Else a stream of short runs would keep a canceled one going."""
    canceled = house.wanted()
    house.lead()
    assert [task.run.id for task in house.worker.tick().started] == [canceled.id]
    with house.truth.write() as connection:
        moves.cancel(connection, operator="ada", runs=[RunRef(canceled.id, 3)])
    house.wanted()
    house.lead()
    adopting = house.worker.tick(poll=True)
    assert (adopting.polled, adopting.lost, len(adopting.started)) == (False, [], 1)
    polling = house.worker.tick(poll=True)
    assert (polling.polled, [task.run.id for task in polling.lost]) == (True, [canceled.id])


def test_what_was_not_committed_is_given_again(house: House) -> None:
    run_id = house.wanted().id
    house.door.crash_before_commit = True
    with pytest.raises(Unreachable):
        house.lead()
    assert house.state(run_id) is RunState.PENDING
    assert house.worker.tick().started == []
    assert house.lead() == 1
    house.adopt()
    assert house.executed() == [run_id]


def test_reading_back_does_not_take_what_has_arrived_for_lost(house: House) -> None:
    house.door.replies_to_lose = 1
    first = house.wanted().id
    with pytest.raises(Unreachable):
        house.lead()
    second = house.wanted().id
    assert house.lead() == 1
    assert [task.run.id for task in house.worker.tick().started] == [second]
    assert [task.run.id for task in house.worker.tick().started] == [first]
    house.worker.tick()
    assert sorted(house.executed()) == [first, second]


def test_reading_back_waits_for_what_is_just_being_given(house: House) -> None:
    """In the database it runs already, and it is in nobody's hands yet."""
    house.worker._on_unknown_commit()
    run_id = house.wanted().id
    looks = meanwhile(house, house.worker.tick)
    assert house.lead() == 1
    assert [task.run.id for task in looks[0].result(30).started] == [run_id]
    house.worker.tick()
    assert house.executed() == [run_id]


def test_a_commit_that_came_late_is_found_by_a_later_look(house: House) -> None:
    """The connection broke, and the database carried out afterwards what it had been sent."""
    run = house.wanted()
    house.door.crash_before_commit = True
    with pytest.raises(Unreachable):
        house.lead()
    assert house.worker.tick().started == []
    with house.truth.write() as connection:
        given = moves.Assignment(run=run, worker_id=WORKER)
        moves.assign(connection, term=house.term, assignments=[given])
        moves.start(connection, worker_id=WORKER, runs=[RunRef(id=run.id, version=2)])
    house.clock.advance(RECONCILE_SECONDS / 2)
    assert [task.run.id for task in house.worker.tick().started] == [run.id]


def test_a_worker_that_takes_nothing_any_more_begins_nothing(house: House) -> None:
    run_id = house.wanted().id
    house.worker.stop_accepting()
    assert house.lead() == 1
    assert house.state(run_id) is RunState.ASSIGNED
    house.worker.tick()
    assert (house.state(run_id), house.executed()) == (RunState.ORPHANED, [])


def test_whoever_stops_taking_knows_of_what_was_just_being_given(house: House) -> None:
    run_id = house.wanted().id

    def stop() -> int:
        house.worker.drain()
        return house.worker.running

    stops = meanwhile(house, stop)
    assert house.lead() == 1
    assert stops[0].result(30) == 1
    house.adopt()
    assert house.executed() == [run_id]


def test_a_worker_that_was_cut_off_meanwhile_gets_nothing(house: House) -> None:
    run_id = house.wanted().id

    with house.truth.read() as connection:
        chosen = house.assigner._choose(connection)
    with house.truth.write() as connection:
        workers.detach(connection, [WORKER])
    with house.worker.local_start() as local, house.door.write() as connection:
        assert not house.assigner._assign(connection, local, house.term, chosen)
    assert (house.state(run_id), house.adopt()) == (RunState.PENDING, [])
