"""A clock that jumps an hour, or a database that was silent, costs no live worker its runs; dead ones are found."""

from datetime import datetime
from random import Random

import pytest

from support.factories import WORKER, depose_and_take, read_run, run_in_state, take_lead
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.leader import RESCUE_INTERVAL_SECONDS, Leader
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.leader.silence_guard import DRIFT_MAX, HEARTBEATS_MIN, SilenceGuard
from tsuzuki.model.clock import ManualClock
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
NOTICE = SETTINGS.silence_notice_seconds
"""On SQLite a silence is on record for so long before runs fail."""


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


def fail_lost_run(
    run_id: int, leader: Leader, term: Term, clock: MovingClock, database: Database
) -> float:
    """Lead until the run is failed as lost; how long that took."""
    since = clock.monotonic()
    while read_run(database, run_id).state is RunState.RUNNING:
        assert clock.monotonic() - since < 10 * SETTINGS.lost_after_seconds
        lead_for(1.0, leader, term, clock)
    lost = read_run(database, run_id)
    assert (lost.state, lost.reason) == (RunState.FAILED, Reason.WORKER_LOST)
    check_history(database)
    return clock.monotonic() - since


@pytest.mark.parametrize("seconds", [0.9, 1.9, 5.0, HOUR])
def test_a_step_does_not_make_the_silence_of_a_worker_longer_than_it_is(
    database: Database, clock: MovingClock, term: Term, seconds: float
) -> None:
    """A worker that is cut off ends its commands by its own clock: it is not judged as lost before that."""
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.step(seconds)
    took = fail_lost_run(run.id, leader, term, clock, database)
    assert took > SETTINGS.executions_end_after_seconds
    notice = NOTICE if database.is_sqlite else 0.0
    assert took <= SETTINGS.lost_after_seconds + notice + 1.0


def test_small_steps_add_up(database: Database, clock: MovingClock, term: Term) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    since = clock.monotonic()
    for _ in range(5):
        clock.step(0.9)
        lead_for(1.0, leader, term, clock)
    fail_lost_run(run.id, leader, term, clock, database)
    assert clock.monotonic() - since > SETTINGS.executions_end_after_seconds


def test_a_step_while_no_process_read_the_clock_is_noticed(
    database: Database, clock: MovingClock, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    leader = a_leader(database)
    listen(leader, term, clock, database)
    clock.advance(2 * SETTINGS.lost_after_seconds)
    heartbeat(database)
    clock.step(HOUR)
    assert fail_lost_run(run.id, leader, term, clock, database) >= SETTINGS.lost_after_seconds


def test_slow_replies_and_a_clock_that_is_a_little_faster_are_no_steps() -> None:
    clock = ManualClock(NOON)
    guard = SilenceGuard(clock=clock, settings=lambda: SETTINGS)

    def read(reply_seconds: float) -> bool:
        def read_time() -> datetime:
            now = clock.now()
            clock.advance(reply_seconds)
            return now

        return guard.may_judge(read_time)

    read(0.0)
    clock.advance(LISTEN)
    for reply_seconds in [0.0, 2.5] * 20:
        clock.step(DRIFT_MAX * (1.0 + reply_seconds) / 2)
        clock.advance(1.0)
        assert read(reply_seconds)


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
    successor = a_leader(database, guard)
    successor.tick(lease.term)
    if database.is_sqlite:
        clock.advance(NOTICE)
        successor.tick(lease.term)
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
    listened = 0.0
    while listened < LISTEN:
        wait = led.seconds_to_next
        assert wait is not None
        assert listened + wait <= LISTEN
        listened += wait
        clock.advance(wait)
        led = newcomer.tick(term)
    if database.is_sqlite:
        clock.advance(NOTICE)
        newcomer.tick(term)
    assert read_run(database, run.id).state is RunState.FAILED


def test_after_a_long_wait_for_the_write_lock_workers_are_not_judged(clock: MovingClock) -> None:
    """Their heartbeats had to wait as well."""
    waits = [(10.0, 0.0)]  # how long each was, and when it ended

    def lock_waited_until(longer_than_seconds: float) -> float:
        return max(until for seconds, until in waits if seconds > longer_than_seconds)

    guard = SilenceGuard(
        clock=clock, settings=lambda: SETTINGS, lock_waited_until=lock_waited_until
    )
    guard.observe(clock.now(), asked_at=clock.monotonic())
    clock.advance(LISTEN)
    assert guard.may_judge(clock.now)
    waits.append((SETTINGS.worker_ttl_seconds, clock.monotonic()))
    assert guard.seconds_left() == LISTEN
    clock.advance(LISTEN)
    waits.append((0.6, clock.monotonic()))
    assert guard.may_judge(clock.now)


def test_a_wait_for_the_write_lock_counts_if_it_is_longer_than_a_worker_may_be_late(
    clock: MovingClock,
) -> None:
    """A worker's last heartbeat may be an interval old when the wait begins."""
    settings = EngineSettings(heartbeat_interval_seconds=2.0, worker_ttl_seconds=4.0).checked()
    asked: list[float] = []

    def lock_waited_until(longer_than_seconds: float) -> float:
        asked.append(longer_than_seconds)
        return 0.0

    guard = SilenceGuard(
        clock=clock, settings=lambda: settings, lock_waited_until=lock_waited_until
    )
    guard.seconds_left()
    assert asked == [2.0]
