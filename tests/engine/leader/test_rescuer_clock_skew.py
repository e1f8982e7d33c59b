"""Clock skew: a clock that was put back takes no run from a live worker, and keeps none with a dead one."""

import pytest

from support.factories import (
    depose_and_take,
    read_run,
    run_in_state,
)
from support.moving_clock import MovingClock
from support.rescuing import (
    A_MOMENT,
    LOST,
    TTL,
    a_rescuer,
    heartbeat,
    request_confirmation,
    the_worker,
)
from tsuzuki.engine.leader.rescuer import Rescued
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("worker", "history_is_valid")

HOUR = 3600.0


def test_a_clock_that_steps_back_takes_nothing_from_a_worker(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    assigned = run_in_state(database, RunState.ASSIGNED, term)
    clock.step(-3600)
    assert a_rescuer(database).tick(term) == Rescued()
    heartbeat(database)
    clock.advance(TTL - A_MOMENT)
    assert a_rescuer(database).tick(term) == Rescued()
    assert read_run(database, run.id).state is RunState.RUNNING
    assert read_run(database, assigned.id).state is RunState.ASSIGNED


@pytest.mark.parametrize("is_in_doubt", [False, True], ids=["", "that was in doubt"])
def test_a_dead_workers_run_is_failed_in_time_though_the_clock_was_put_back(
    database: Database, clock: MovingClock, term: Term, is_in_doubt: bool
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    if is_in_doubt:
        request_confirmation(database)
    clock.step(-HOUR)
    rescuer = a_rescuer(database)
    assert rescuer.tick(term) == Rescued()
    clock.advance(LOST - A_MOMENT)
    rescuer.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    clock.advance(A_MOMENT)
    assert rescuer.tick(term).failed == 1


def test_what_a_dead_worker_had_not_started_is_orphaned_in_time_though_the_clock_was_put_back(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.ASSIGNED, term)
    clock.step(-HOUR)
    rescuer = a_rescuer(database)
    rescuer.tick(term)
    clock.advance(TTL - A_MOMENT)
    assert rescuer.tick(term) == Rescued()
    assert read_run(database, run.id).state is RunState.ASSIGNED
    clock.advance(A_MOMENT)
    assert rescuer.tick(term) == Rescued(detached=1, orphaned=1)


def test_a_live_worker_is_not_affected_by_a_clock_that_was_put_back(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    clock.step(-HOUR)
    rescuer = a_rescuer(database)
    for _ in range(10):
        rescuer.tick(term)
        clock.advance(TTL / 2)
        heartbeat(database)
    after = read_run(database, run.id)
    assert (after.state, after.version) == (RunState.RUNNING, run.version)
    assert the_worker(database).state is WorkerState.ATTACHED


def test_a_deposed_leader_resets_no_heartbeat(
    database: Database, clock: MovingClock, term: Term
) -> None:
    depose_and_take(database)
    clock.step(-HOUR)
    before = the_worker(database)
    a_rescuer(database).tick(term)
    assert the_worker(database) == before
