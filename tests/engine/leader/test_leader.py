"""The leader's rounds, in their three modes: busy, woken while idle, and full; and when the next one is due."""

from datetime import timedelta
from random import Random

import pytest

from support.dialects import only_on_postgresql
from support.factories import create_run
from support.leader_and_worker import LeaderAndWorker
from support.moving_clock import NOON, MovingClock
from support.planning import HOUR, at, scheduled
from tsuzuki.engine.coordination.protocol import NoCoordination
from tsuzuki.engine.leader.leader import (
    PAUSE_AFTER_FIRST_SECONDS,
    POLL_INTERVAL_BUSY_SECONDS,
    Leader,
    LeaderRound,
)
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import events
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")


# --- when the next round is due -------------------------------------------------------------------


def test_the_leaders_next_round_is_due_with_the_nearest_tick_or_waiting_run(
    database: Database, clock: MovingClock, term: Term
) -> None:
    settings = EngineSettings()
    leader = Leader(
        database=database,
        settings=lambda: settings,
        random=Random(1),
        coordination=NoCoordination(),
    )
    assert leader.tick(term) == LeaderRound()
    job_id = scheduled(database)
    assert leader.tick(term).next_at == at(1)
    create_run(database, job_id, scheduled_for=at(0.5))
    assert leader.tick(term).next_at == at(0.5)
    clock.advance(0.5 * HOUR)
    assert leader.tick(term).next_at == at(1)


@only_on_postgresql
@pytest.mark.parametrize("ahead_seconds", [-2 * HOUR, 2 * HOUR])
def test_a_leader_waits_by_the_databases_clock_however_far_its_own_is_from_it(
    database: Database, term: Term, ahead_seconds: float
) -> None:
    settings = EngineSettings()
    scheduled(database)
    own_clock = ManualClock(NOON + timedelta(seconds=ahead_seconds))
    leader = Leader(
        database=Database(database.engine, clock=own_clock),
        settings=lambda: settings,
        random=Random(1),
        coordination=NoCoordination(),
    )
    assert leader.tick(term).seconds_to_next == HOUR


def a_leader(pair: LeaderAndWorker) -> Leader:
    leader = Leader(
        database=pair.faulty_database,
        settings=EngineSettings,
        random=Random(1),
        coordination=NoCoordination(),
        local_start=pair.worker.local_start,
    )
    leader.assigner = pair.assigner
    return leader


def emit(pair: LeaderAndWorker) -> None:
    with pair.database.write() as connection:
        events.emit(connection, event_type="pushed", payload={})


# --- busy -----------------------------------------------------------------------------------------


def test_a_busy_leader_only_assigns_until_it_polls_again(pair: LeaderAndWorker) -> None:
    leader = a_leader(pair)
    pair.submit()
    assert leader.tick(pair.term).assigned == 1
    emit(pair)
    pair.submit()
    done = leader.tick(pair.term)
    assert (done.assigned, done.events, done.again_at_once) == (1, 0, True)
    pair.clock.advance(POLL_INTERVAL_BUSY_SECONDS)
    assert leader.tick(pair.term).events == 1


def test_a_busy_leader_with_nothing_to_assign_does_a_full_round(pair: LeaderAndWorker) -> None:
    leader = a_leader(pair)
    pair.submit()
    leader.tick(pair.term)
    emit(pair)
    assert leader.tick(pair.term).events == 1


# --- woken while idle -----------------------------------------------------------------------------


def test_an_idle_leader_that_is_woken_assigns_the_first_run_before_it_polls(
    pair: LeaderAndWorker,
) -> None:
    leader = a_leader(pair)
    pair.learn_job()
    leader.tick(pair.term)
    run_id = pair.submit().id
    done = leader.tick(pair.term, woken=True)
    assert (done.assigned, done.seconds_to_next) == (1, PAUSE_AFTER_FIRST_SECONDS)
    assert pair.woken == 1
    assert pair.adopt() == [run_id]


def test_an_idle_leader_that_is_woken_with_nothing_due_does_a_full_round(
    pair: LeaderAndWorker,
) -> None:
    leader = a_leader(pair)
    leader.tick(pair.term)
    emit(pair)
    assert leader.tick(pair.term, woken=True).events == 1


def test_a_busy_leader_that_is_woken_does_a_full_round_when_its_poll_is_due(
    pair: LeaderAndWorker,
) -> None:
    leader = a_leader(pair)
    pair.submit()
    leader.tick(pair.term)
    pair.clock.advance(POLL_INTERVAL_BUSY_SECONDS)
    emit(pair)
    pair.submit()
    done = leader.tick(pair.term, woken=True)
    assert (done.assigned, done.events) == (1, 1)
