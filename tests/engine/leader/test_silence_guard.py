"""A clock that jumps an hour, or a database that was silent, costs no live worker its runs; dead ones are found."""

from random import Random

import pytest

from support.factories import WORKER, depose_and_take, read_run, run_in_state, take_lead
from support.history_checker import check_history
from support.moving_clock import MovingClock
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.leader import RESCUE_INTERVAL_SECONDS, Leader
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.leader.silence_guard import HEARTBEATS_MIN, SilenceGuard
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


def a_leader(database: Database, silence_guard: SilenceGuard | None = None) -> Leader:
    return Leader(
        database=database,
        settings=lambda: SETTINGS,
        random=Random(1),
        coordination=NoCoordination(),
        silence_guard=silence_guard,
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


def lead_for(seconds: float, leader: Leader, term: Term, clock: MovingClock) -> None:
    """Rounds at least as often as a leader has them."""
    for _ in range(int(seconds)):
        clock.advance(1.0)
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
    lead_for(SETTINGS.lost_after_seconds, leader, term, clock)
    assert read_run(database, run.id).state is RunState.FAILED


def test_a_silence_of_the_database_costs_no_live_worker_its_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    """No heartbeat could be stored; the leader may be the first one that is answered again."""
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.advance(SETTINGS.lost_after_seconds)
    leader.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    clock.advance(LISTEN)
    heartbeat(database)
    leader.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING


def test_a_process_that_followed_the_clock_judges_as_soon_as_it_leads(
    database: Database, clock: MovingClock
) -> None:
    """The leader dies with its worker: its successor knows already that the clock did not step."""
    first = take_lead(database, lease_seconds=SETTINGS.lease_seconds)
    run = run_in_state(database, RunState.RUNNING, first)
    guard = SilenceGuard(clock=clock, settings=lambda: SETTINGS)
    lease = Lease(
        database=database,
        clock=clock,
        settings=lambda: SETTINGS,
        holder="leader-2",
        on_database_time=guard.observe,
    )
    while lease.seconds_until_free():
        clock.advance(1.0)
    assert lease.tick()
    assert lease.term is not None
    a_leader(database, guard).tick(lease.term)
    assert read_run(database, run.id).state is RunState.FAILED


def test_while_anything_needs_rescue_the_next_round_is_soon(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    assert leader.tick(term).seconds_to_next is None
    lead_for(SETTINGS.worker_ttl_seconds, leader, term, clock)
    assert leader.tick(term).seconds_to_next == RESCUE_INTERVAL_SECONDS


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
