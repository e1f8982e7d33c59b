"""When a worker asks the database: when it is called, when it is time, and not for what its own process tells it."""

from random import Random

import pytest

from support.factories import read_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecutor
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.worker.steps import POLL_BUSY_SECONDS
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Runs
from tsuzuki.store.sql.database import Database


@pytest.fixture
def executor() -> ScriptedExecutor:
    return ScriptedExecutor()


@pytest.fixture
def faulty_database(database: Database) -> UnreliableDatabase:
    return UnreliableDatabase(database)


@pytest.fixture
def engine(
    faulty_database: UnreliableDatabase, clock: MovingClock, executor: ScriptedExecutor
) -> Engine:
    engine = Engine(
        database=faulty_database,
        executor=executor,
        clock=clock,
        random=Random(1),
        role=ProcessRole(lead=False, capacity=1),
        software_version="test",
    )
    engine.worker_steps.register()
    engine.wakeups.worker.wake()
    engine.worker_steps.work_step()
    return engine


def asks(engine: Engine, database: Database) -> bool:
    """Whether the next step asks for assigned runs; then it is woken, so that no time passes."""
    engine.wakeups.worker.wake()
    with recorded(database) as sent:
        engine.worker_steps.work_step()
    return any("'ASSIGNED'" in statement for statement in sent)


def test_a_wake_up_of_its_own_process_makes_a_worker_ask_nothing(
    engine: Engine, database: Database, clock: MovingClock
) -> None:
    assert not asks(engine, database)
    clock.advance(POLL_BUSY_SECONDS)
    assert asks(engine, database)


def test_a_worker_that_is_called_asks_at_once(engine: Engine, database: Database) -> None:
    engine.wakeups.wake({engine.worker.identity.id})
    assert asks(engine, database)
    assert not asks(engine, database)


def test_a_worker_that_nothing_has_woken_asks(engine: Engine, database: Database) -> None:
    engine.worker_steps.work_step()
    assert asks(engine, database)


def test_a_worker_asks_when_a_run_that_was_taken_from_it_has_stopped(
    engine: Engine, database: Database, executor: ScriptedExecutor
) -> None:
    """What its slot was assigned to meanwhile must not wait for the next poll."""
    me, term = engine.worker.identity.id, take_lead(database, lease_seconds=1_000_000)
    canceled = run_in_state(database, RunState.ASSIGNED, term, worker_id=me)
    engine.worker.tick()
    Runs(database=database, actor="operator").cancel(canceled.id)
    waiting = run_in_state(database, RunState.ASSIGNED, term, worker_id=me)
    engine.wakeups.wake({me})
    assert asks(engine, database)
    executor.of(canceled.id).obey()
    assert asks(engine, database)
    assert read_run(database, waiting.id).state is RunState.RUNNING
    assert executor.of(waiting.id).stops == []


def test_an_end_whose_reply_was_lost_wakes_the_leader_when_it_is_refused(
    engine: Engine, faulty_database: UnreliableDatabase, executor: ScriptedExecutor
) -> None:
    me, term = engine.worker.identity.id, take_lead(faulty_database, lease_seconds=1_000_000)
    run_in_state(faulty_database, RunState.ASSIGNED, term, worker_id=me)
    engine.worker.tick()
    executor.last.succeed()
    faulty_database.replies_to_lose = 1
    with pytest.raises(Unreachable):
        engine.worker_steps.work_step()
    engine.wakeups.leader.wait(0.0)
    engine.worker_steps.work_step()
    assert engine.worker.running == 0
    assert engine.wakeups.leader.wait(0.0)
