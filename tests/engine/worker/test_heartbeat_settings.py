"""Settings that change while a worker runs: it is judged by no shorter ones than it has confirmed."""

from random import Random

import pytest

from support.factories import WORKER, read_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.rescuer import Rescuer
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Database

LONG = EngineSettings(
    heartbeat_interval_seconds=2.0, worker_ttl_seconds=60.0, worker_grace_seconds=40.0
).checked()
SHORT = EngineSettings(
    heartbeat_interval_seconds=2.0, worker_ttl_seconds=6.0, worker_grace_seconds=4.0
).checked()


class Fixture:
    """A worker, and a leader that has read the newest settings at once. The worker reads them with `learn`."""

    def __init__(self, database: Database, clock: MovingClock, *, gives_notice: bool) -> None:
        self.database = database
        self.clock = clock
        self.settings = LONG
        self.faulty = UnreliableDatabase(database)
        self.ends_at = 0.0
        with database.write() as connection:
            workers.register(
                connection,
                worker_id=WORKER,
                host="host",
                pid=1,
                capacity=1,
                tags=frozenset(),
                software_version="test",
                works_by=LONG,
            )
        self.term = take_lead(database, lease_seconds=1_000_000)
        self.heartbeat = Heartbeat(
            database=self.faulty,
            clock=clock,
            settings=lambda: self.settings,
            worker_id=lambda: WORKER,
            renew_deadline=self._renew,
        )
        self.heartbeat.renew(clock.monotonic(), LONG)
        self.run_id = run_in_state(database, RunState.RUNNING, self.term).id
        self._by_short = Rescuer(
            database=database,
            settings=lambda: SHORT,
            random=Random(1),
            gives_notice=gives_notice,
        )

    def _renew(self, at: float) -> None:
        self.ends_at = at

    def is_lost_after(self, seconds: int) -> bool:
        """Whether a leader with the short settings fails the run within that time."""
        for _ in range(seconds):
            self.clock.advance(1.0)
            self._by_short.tick(self.term)
            if read_run(self.database, self.run_id).state is RunState.FAILED:
                return True
        return False


@pytest.fixture(params=[False, True], ids=["plain", "with notice"])
def fixture(database: Database, clock: MovingClock, request: pytest.FixtureRequest) -> Fixture:
    return Fixture(database, clock, gives_notice=request.param)


def test_a_worker_that_is_cut_off_is_judged_by_what_it_last_confirmed(fixture: Fixture) -> None:
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    assert not fixture.is_lost_after(int(LONG.lost_after_seconds) - 1)
    assert not fixture.heartbeat.is_before_deadline
    assert fixture.ends_at < fixture.clock.monotonic()
    assert fixture.is_lost_after(int(LONG.worker_grace_seconds))


def test_a_worker_that_confirmed_shorter_settings_is_judged_by_them(fixture: Fixture) -> None:
    fixture.settings = SHORT
    sent_at = fixture.clock.monotonic()
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    assert fixture.ends_at == sent_at + SHORT.executions_end_after_seconds
    assert fixture.is_lost_after(int(SHORT.lost_after_seconds) + 4)
    assert not fixture.heartbeat.is_before_deadline


@pytest.mark.parametrize("is_stored", [False, True])
def test_shorter_settings_without_an_answer_are_kept_to(fixture: Fixture, is_stored: bool) -> None:
    """Whether they were stored is not known, so what runs here ends in time for them."""
    fixture.settings = SHORT
    sent_at = fixture.clock.monotonic()
    if is_stored:
        fixture.faulty.replies_to_lose = 1
    else:
        fixture.faulty.crash_before_commit = True
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    assert fixture.ends_at == sent_at + SHORT.executions_end_after_seconds
    fixture.settings = LONG
    fixture.clock.advance(SHORT.worker_ttl_seconds + SHORT.continuation_seconds)
    assert not fixture.heartbeat.is_before_deadline


def test_longer_settings_are_relied_on_once_they_are_stored(fixture: Fixture) -> None:
    fixture.settings = SHORT
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    fixture.settings = LONG
    fixture.faulty.crash_before_commit = True
    assert fixture.heartbeat.tick() is HeartbeatResult.UNREACHABLE
    fixture.clock.advance(SHORT.worker_ttl_seconds + SHORT.continuation_seconds - 0.1)
    assert fixture.heartbeat.is_before_deadline
    assert fixture.heartbeat.tick() is HeartbeatResult.OK
    fixture.clock.advance(SHORT.lost_after_seconds)
    assert fixture.heartbeat.is_before_deadline


def test_settings_are_sent_only_when_they_have_changed(
    fixture: Fixture, database: Database
) -> None:
    def names_them() -> bool:
        with recorded(database) as sent:
            fixture.heartbeat.tick()
        return any("grace_seconds" in statement for statement in sent)

    assert not names_them()
    fixture.settings = SHORT
    assert names_them()
    assert not names_them()
