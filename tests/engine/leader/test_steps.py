"""The leader's steps: lease, round and archive; without a term, none of them does a leader's work."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from support.factories import add_job, add_worker, create_run, read_run
from support.moving_clock import MovingClock
from support.statement_recorder import recorded
from tsuzuki.engine.archive.archivist import Archived
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.leader import Leader
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.leader.steps import ARCHIVE_INTERVAL_SECONDS, LeaderSteps
from tsuzuki.engine.metrics import Metrics
from tsuzuki.engine.settings_cache import SettingsCache
from tsuzuki.engine.wakeups import WakeUp
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings()


class Candidate:
    """A process that may lead, without its threads."""

    def __init__(self, database: Database, clock: MovingClock, holder: str = "a") -> None:
        settings = SettingsCache(database=database, clock=clock)
        self.wakeup = WakeUp(clock)
        self.archived: list[Archived] = []
        self.lease = Lease(database=database, clock=clock, settings=settings, holder=holder)
        retention: Any = SimpleNamespace(tick=lambda _term: self.archived.pop(0))
        listener: Any = SimpleNamespace(is_open=False)
        self.steps = LeaderSteps(
            lease=self.lease,
            leader=Leader(
                database=database,
                settings=settings,
                random=Random(1),
                coordination=NoCoordination(),
            ),
            retention=retention,
            settings=settings,
            metrics=Metrics(),
            wakeup=self.wakeup,
            listener=listener,
            jitter=Random(1),
        )


@pytest.fixture
def leader(database: Database, clock: MovingClock) -> Candidate:
    candidate = Candidate(database, clock)
    assert candidate.steps.lease_step() == SETTINGS.lease_renew_interval_seconds
    return candidate


@pytest.fixture
def follower(leader: Candidate, database: Database, clock: MovingClock) -> Candidate:
    return Candidate(database, clock, holder="b")


def test_a_new_leader_does_a_round_at_once(leader: Candidate, database: Database) -> None:
    add_worker(database)
    run_id = create_run(database, add_job(database)).id
    assert leader.wakeup.wait(0)
    assert leader.steps.round_step() == 0.0
    assert read_run(database, run_id).state is RunState.ASSIGNED
    assert (leader.steps.rounds_done, leader.steps.rounds.is_set()) == (1, True)


def test_a_follower_does_no_round_and_archives_nothing(
    follower: Candidate, database: Database
) -> None:
    add_worker(database)
    run_id = create_run(database, add_job(database)).id
    follower.steps.lease_step()
    follower.steps.round_step()
    assert follower.steps.archive_step() >= ARCHIVE_INTERVAL_SECONDS * 0.8
    assert follower.steps.rounds_done == 0
    assert read_run(database, run_id).state is RunState.PENDING


def test_a_follower_asks_for_the_lease_when_it_ends_and_not_with_its_next_poll(
    follower: Candidate, clock: MovingClock
) -> None:
    clock.advance(SETTINGS.lease_seconds - 0.01)
    assert follower.steps.lease_step() <= 0.01 + 0.2
    clock.advance(0.01)
    follower.steps.lease_step()
    assert follower.lease.term is not None


def test_the_leader_waits_between_two_rounds_at_most_for_a_heartbeat(
    leader: Candidate, clock: MovingClock
) -> None:
    leader.wakeup.wait(0)
    leader.steps.round_step()
    assert 0 < clock.monotonic() <= SETTINGS.heartbeat_interval_seconds


def test_the_leader_archives_again_at_once_while_there_is_more(leader: Candidate) -> None:
    leader.archived = [Archived(runs=2, lines=10, more=True), Archived(runs=1, lines=5)]
    assert leader.steps.archive_step() == 0.0
    assert leader.steps.archive_step() >= ARCHIVE_INTERVAL_SECONDS * 0.8


def test_a_follower_writes_nothing_while_the_lease_is_held(
    follower: Candidate, database: Database
) -> None:
    with recorded(database) as sent:
        follower.steps.lease_step()
    assert sent
    assert [statement for statement in sent if not statement.startswith("SELECT")] == []
