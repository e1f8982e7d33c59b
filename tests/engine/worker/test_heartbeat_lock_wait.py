"""SQLite: a wait for the write lock is not silence, because no process can fail a run meanwhile."""

from random import Random

from support.dialects import only_on_sqlite
from support.factories import WORKER, add_worker, read_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.scripted_executors import ScriptedExecutor
from support.threads import in_background
from support.waiting import wait_until
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Database

pytestmark = only_on_sqlite

SETTINGS = EngineSettings().checked()
CHECK_SECONDS = 0.1
CHECKS = round(SETTINGS.continuation_seconds / CHECK_SECONDS)


def a_heartbeat(database: Database, clock: MovingClock, deadlines: list[float]) -> Heartbeat:
    return Heartbeat(
        database=database,
        clock=clock,
        settings=lambda: SETTINGS,
        worker_id=lambda: WORKER,
        renew_deadline=deadlines.append,
    )


def a_rescuer(database: Database) -> Rescuer:
    return Rescuer(
        database=database, settings=lambda: SETTINGS, random=Random(1), gives_notice=True
    )


def test_waiting_for_the_lock_is_not_silence(database: Database, clock: MovingClock) -> None:
    add_worker(database)
    deadlines: list[float] = []
    heartbeat = a_heartbeat(database, clock, deadlines)
    with database.write():
        hanging = in_background(heartbeat.tick)
        wait_until(lambda: heartbeat.is_sending, "the heartbeat hangs")
        for _ in range(60):
            clock.advance(1.0)
            heartbeat.read_silence()
            assert not heartbeat.looks_hung(CHECK_SECONDS)
            assert heartbeat.is_before_deadline
        left = deadlines[-1] - clock.monotonic()
        assert SETTINGS.continuation_seconds < left < SETTINGS.silence_notice_seconds
    assert hanging.result(30) is HeartbeatResult.OK
    assert database.lock_waited_until(longer_than_seconds=59.0) == clock.monotonic()
    assert database.lock_waited_until(longer_than_seconds=61.0) == 0


def test_while_the_leaders_own_heartbeat_waits_for_the_lock_it_judges_no_worker(
    database: Database, clock: MovingClock
) -> None:
    """Its rounds may get the lock before any heartbeat does: who gets it next is a matter of chance."""
    engine = Engine(
        database=database,
        executor=ScriptedExecutor(),
        clock=clock,
        random=Random(1),
        role=ProcessRole(),
        software_version="test",
    )
    engine.worker.register()
    guard = engine.leader._silence_guard
    guard.observe(clock.now(), asked_at=clock.monotonic())
    with database.write():
        hanging = in_background(engine.heartbeat.tick)
        wait_until(lambda: engine.heartbeat.is_sending, "the heartbeat waits")
        for _ in range(3):
            clock.advance(SETTINGS.heartbeat_interval_seconds)
            guard.observe(clock.now(), asked_at=clock.monotonic())
        assert guard.seconds_left() > 0
    assert hanging.result(30) is HeartbeatResult.OK


def test_a_recorded_silence_ends_it(database: Database, clock: MovingClock) -> None:
    """The leader got the lock before our heartbeat: we stop before it fails our runs."""
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    run = run_in_state(database, RunState.RUNNING, term)
    heartbeat = a_heartbeat(database, clock, [])
    rescuer = a_rescuer(database)
    clock.advance(SETTINGS.lost_after_seconds + 3600)
    rescuer.tick(term)
    assert read_run(database, run.id).state is RunState.RUNNING
    with database.write():
        hanging = in_background(heartbeat.tick)
        wait_until(lambda: heartbeat.is_sending, "the heartbeat hangs")
        heartbeat.read_silence()
        found = [heartbeat.looks_hung(CHECK_SECONDS) for _ in range(CHECKS)]
        assert found == [False] * (CHECKS - 1) + [True]
        assert not heartbeat.is_before_deadline
    hanging.result(30)


def test_runs_fail_only_after_the_notice(database: Database, clock: MovingClock) -> None:
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    run = run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    clock.advance(3600)
    rescuer.tick(term)
    clock.advance(SETTINGS.silence_notice_seconds - 0.01)
    assert rescuer.tick(term).failed == 0
    clock.advance(0.01)
    assert rescuer.tick(term).failed == 1
    assert read_run(database, run.id).state is RunState.FAILED


def test_a_clock_step_does_not_shorten_the_notice(database: Database, clock: MovingClock) -> None:
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    clock.advance(SETTINGS.lost_after_seconds)
    rescuer.tick(term)
    clock.step(60.0)
    assert rescuer.tick(term).failed == 0
    clock.advance(SETTINGS.silence_notice_seconds)
    assert rescuer.tick(term).failed == 1


def test_a_record_that_was_committed_late_gives_the_whole_notice(
    database: Database, clock: MovingClock
) -> None:
    """Its leader was paused before the commit: a worker may have read just before it that there is no record."""
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    run_in_state(database, RunState.RUNNING, term)
    clock.advance(SETTINGS.lost_after_seconds)
    with database.write() as connection:
        ttl = SETTINGS.worker_ttl_seconds
        assert workers.record_silence(connection, term=term, silent_after_seconds=ttl) == 1
        clock.advance(60.0)
    rescuer = a_rescuer(database)
    assert rescuer.tick(term).failed == 0
    clock.advance(SETTINGS.silence_notice_seconds)
    assert rescuer.tick(term).failed == 1


def test_a_record_in_the_future_is_made_anew(database: Database, clock: MovingClock) -> None:
    """The clock was set back after it."""
    add_worker(database)
    term = take_lead(database, lease_seconds=100_000)
    run_in_state(database, RunState.RUNNING, term)
    rescuer = a_rescuer(database)
    clock.advance(7200.0)
    rescuer.tick(term)
    clock.step(-3600.0)
    rescuer.tick(term)
    clock.advance(SETTINGS.silence_notice_seconds)
    assert rescuer.tick(term).failed == 1
