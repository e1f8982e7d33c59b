"""Clock skew: a clock that jumps an hour makes no live worker look silent; dead ones are still found."""

from random import Random

import pytest

from support.factories import WORKER, depose_and_take, read_run, run_in_state
from support.history_checker import check_history
from support.moving_clock import MovingClock
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.leader import Leader
from tsuzuki.engine.leader.silence_guard import HEARTBEATS_MIN
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("worker")

SETTINGS = EngineSettings().checked()
HOUR = 3600.0
LISTEN = SETTINGS.heartbeat_interval_seconds * HEARTBEATS_MIN


def a_leader(database: Database) -> Leader:
    return Leader(
        database=database,
        settings=lambda: SETTINGS,
        random=Random(1),
        coordination=NoCoordination(),
    )


def heartbeat(database: Database) -> None:
    with database.write() as connection:
        assert workers.heartbeat(connection, WORKER) is WorkerState.ATTACHED


def listen(leader: Leader, term: Term, clock: MovingClock, database: Database) -> None:
    """A leader's first moments, in which the worker sends a heartbeat."""
    leader.tick(term)
    clock.advance(LISTEN)
    heartbeat(database)
    leader.tick(term)


def test_a_clock_that_jumps_an_hour_costs_no_live_worker_its_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.step(HOUR)
    leader.tick(term)
    clock.advance(SETTINGS.heartbeat_interval_seconds)
    heartbeat(database)
    clock.advance(LISTEN)
    heartbeat(database)
    leader.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    check_history(database)


def test_a_clock_that_jumps_in_the_middle_of_a_round_costs_no_live_worker_its_run(
    database: Database, clock: MovingClock, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    with monkeypatch.context() as patch:
        patch.setattr(leader._event_intake, "tick", lambda _term: clock.step(HOUR))
        leader.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    heartbeat(database)
    clock.advance(LISTEN)
    leader.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING


def test_a_new_leader_listens_before_it_judges(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.step(HOUR)
    new_term = depose_and_take(database)
    newcomer = a_leader(database)
    newcomer.tick(new_term)
    assert read_run(database, run.id).state is RunState.RUNNING


def test_a_worker_that_is_really_dead_is_found_all_the_same(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.step(HOUR)
    leader.tick(term)
    clock.advance(LISTEN)
    leader.tick(term)
    lost = read_run(database, run.id)
    assert (lost.state, lost.reason) == (RunState.FAILED, Reason.WORKER_LOST)
    check_history(database)


def test_without_a_jump_silence_is_judged_as_soon_as_it_is_long_enough(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.advance(SETTINGS.lost_after_seconds)
    leader.tick(term)
    assert read_run(database, run.id).state is RunState.FAILED


def test_a_new_leader_comes_back_when_it_has_listened_long_enough(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """And not with its next usual round: a run may be waiting to be rescued."""
    run = run_in_state(database, RunState.RUNNING, term)
    clock.advance(SETTINGS.lost_after_seconds)
    newcomer = a_leader(database)
    led = newcomer.tick(term)
    assert led.seconds_to_next is not None
    assert led.seconds_to_next <= LISTEN
    clock.advance(led.seconds_to_next)
    newcomer.tick(term)
    assert read_run(database, run.id).state is RunState.FAILED
