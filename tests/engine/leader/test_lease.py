"""The lease: who leads, and until when a holder may believe that it does."""

from dataclasses import replace
from random import Random

import pytest

from support.factories import take_lead
from support.moving_clock import MovingClock
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import leadership
from tsuzuki.store.leadership import Leadership
from tsuzuki.store.sql.database import Database

LEASE = EngineSettings(
    lease_seconds=10.0, lease_margin_seconds=2.0, lease_renew_interval_seconds=3.0
)
BELIEVED_SECONDS = 8.0
HOUR = 3600.0


def a_lease(
    database: Database, clock: MovingClock, holder: str = "a", settings: EngineSettings = LEASE
) -> Lease:
    return Lease(database=database, clock=clock, settings=lambda: settings, holder=holder)


def row(database: Database) -> Leadership:
    with database.read() as connection:
        return leadership.current(connection)


def test_a_free_lease_is_taken_by_the_first_candidate(
    database: Database, clock: MovingClock
) -> None:
    first, second = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    assert first.seconds_until_free() == 0
    assert first.tick()
    assert not second.tick()
    assert first.term is not None
    assert (first.term.holder, first.term.epoch) == ("a", 1)
    assert second.term is None
    assert second.seconds_until_free() == LEASE.lease_seconds
    clock.advance(LEASE.lease_seconds - 1)
    assert second.seconds_until_free() == 1
    clock.advance(1)
    assert second.seconds_until_free() == 0


def test_a_renewed_lease_goes_on_under_the_same_epoch(
    database: Database, clock: MovingClock
) -> None:
    lease, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    lease.tick()
    first = lease.term
    for _ in range(5):
        clock.advance(BELIEVED_SECONDS - 0.5)
        assert lease.tick()
        assert not other.tick()
    assert lease.term == first


def test_a_leader_stops_believing_before_another_can_lead(
    database: Database, clock: MovingClock
) -> None:
    lease, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    lease.tick()
    clock.advance(BELIEVED_SECONDS - 0.001)
    assert lease.term is not None
    clock.advance(0.001)
    assert lease.term is None
    clock.advance(1.999)
    assert not other.tick()
    clock.advance(0.001)
    assert other.seconds_until_free() == 0
    assert other.tick()
    assert row(database).epoch == 2


def test_the_deadline_counts_from_before_the_request_not_from_its_reply(
    database: Database, clock: MovingClock
) -> None:
    slow = UnreliableDatabase(database)
    lease = a_lease(slow, clock)
    slow.after_commit.append(lambda: clock.advance(5.0))
    assert lease.tick()
    clock.advance(BELIEVED_SECONDS - 5.0)
    assert lease.term is None


def test_a_reply_that_comes_after_the_deadline_is_not_believed(
    database: Database, clock: MovingClock
) -> None:
    slow = UnreliableDatabase(database)
    lease = a_lease(slow, clock)
    slow.after_commit.append(lambda: clock.advance(60.0))
    lease.tick()
    assert lease.term is None


@pytest.mark.parametrize("is_renewal", [False, True])
def test_a_lease_confirmed_after_its_deadline_is_released_so_that_another_leads_at_once(
    database: Database, clock: MovingClock, is_renewal: bool
) -> None:
    """As behind a long write lock: the lease begins when the statement gets through, the belief before it waits."""
    slow = UnreliableDatabase(database)
    lease, other = a_lease(slow, clock, "a"), a_lease(database, clock, "b")
    if is_renewal:
        lease.tick()
    slow.after_commit.append(lambda: clock.advance(BELIEVED_SECONDS + 0.5))
    assert not lease.tick()
    assert lease.term is None
    assert other.seconds_until_free() == 0
    assert other.tick()


@pytest.mark.parametrize("step_seconds", [-HOUR, HOUR])
def test_a_paused_holder_does_not_believe_its_old_term_whatever_the_wall_clock_shows(
    database: Database, clock: MovingClock, step_seconds: float
) -> None:
    lease = a_lease(database, clock)
    lease.tick()
    clock.advance(BELIEVED_SECONDS)
    clock.step(step_seconds)
    assert lease.term is None


def test_a_step_of_the_wall_clock_does_not_end_a_term_by_itself(
    database: Database, clock: MovingClock
) -> None:
    lease = a_lease(database, clock)
    lease.tick()
    clock.step(-HOUR)
    assert lease.term is not None
    assert lease.tick()
    assert row(database).epoch == 1


def test_a_leader_that_was_overtaken_in_its_pause_comes_back_as_a_follower(
    database: Database, clock: MovingClock
) -> None:
    lease, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    lease.tick()
    clock.advance(60.0)
    assert other.tick()
    assert not lease.tick()
    assert (lease.term, row(database).holder) == (None, "b")


def test_an_error_during_renewal_ends_the_term(database: Database, clock: MovingClock) -> None:
    unreliable = UnreliableDatabase(database)
    lease = a_lease(unreliable, clock)
    lease.tick()
    unreliable.is_away = True
    with pytest.raises(Unreachable):
        lease.tick()
    assert lease.term is None


def test_a_renewal_whose_reply_was_lost_ends_the_term_and_the_lease_runs_out(
    database: Database, clock: MovingClock
) -> None:
    unreliable = UnreliableDatabase(database)
    lease, other = a_lease(unreliable, clock, "a"), a_lease(database, clock, "b")
    lease.tick()
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        lease.tick()
    assert lease.term is None
    assert not lease.tick()
    assert not other.tick()
    clock.advance(LEASE.lease_seconds)
    assert lease.tick()
    assert lease.term is not None
    assert lease.term.epoch == 2


def test_a_lease_taken_without_a_reply_is_not_believed_and_never_used(
    database: Database, clock: MovingClock
) -> None:
    unreliable = UnreliableDatabase(database)
    lease = a_lease(unreliable, clock)
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        lease.tick()
    assert (lease.term, row(database).holder) == (None, "a")
    clock.advance(LEASE.lease_seconds)
    assert lease.tick()
    assert row(database).epoch == 2


def test_a_refused_renewal_ends_the_term(database: Database, clock: MovingClock) -> None:
    lease = a_lease(database, clock)
    lease.tick()
    with database.write() as connection:
        leadership.depose(connection)
    assert not lease.tick()
    assert lease.term is None
    assert lease.tick()
    assert row(database).epoch == 2


def test_while_a_renewal_is_under_way_the_term_still_holds(
    database: Database, clock: MovingClock
) -> None:
    """The leader's loop, in another thread, must not pause each time the lease is renewed."""
    watched = UnreliableDatabase(database)
    lease = a_lease(watched, clock)
    lease.tick()
    term = lease.term
    seen = []
    watched.before_commit.append(lambda: seen.append(lease.term))
    clock.advance(3.0)
    lease.tick()
    assert seen == [term]


def test_while_a_renewal_is_under_way_the_old_deadline_still_counts(
    database: Database, clock: MovingClock
) -> None:
    watched = UnreliableDatabase(database)
    lease = a_lease(watched, clock)
    lease.tick()
    seen = []

    def much_later() -> None:
        clock.advance(BELIEVED_SECONDS)
        seen.append(lease.term)

    watched.before_commit.append(much_later)
    lease.tick()
    assert seen == [None]


def test_stepping_down_lets_another_lead_at_once(database: Database, clock: MovingClock) -> None:
    lease, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    lease.tick()
    lease.step_down()
    assert lease.term is None
    assert other.seconds_until_free() == 0
    assert other.tick()


def test_stepping_down_late_does_not_depose_the_next_leader(
    database: Database, clock: MovingClock
) -> None:
    lease, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    lease.tick()
    clock.advance(LEASE.lease_seconds)
    other.tick()
    lease.step_down()
    lease.step_down()
    assert (row(database).holder, row(database).is_valid) == ("b", True)
    assert other.tick()


def test_a_term_is_believed_as_long_as_its_own_lease_said_when_the_settings_change(
    database: Database, clock: MovingClock
) -> None:
    current = [replace(LEASE, lease_seconds=60.0)]
    lease = Lease(database=database, clock=clock, settings=lambda: current[0], holder="a")
    lease.tick()
    current[0] = LEASE
    clock.advance(57.0)
    assert lease.term is not None
    assert lease.tick()
    clock.advance(BELIEVED_SECONDS)
    assert lease.term is None
    clock.advance(2.0)
    assert lease.seconds_until_free() == 0


def test_a_second_engine_of_the_same_name_does_not_renew_for_the_first(
    database: Database, clock: MovingClock
) -> None:
    take_lead(database, "a", lease_seconds=LEASE.lease_seconds)
    namesake = a_lease(database, clock, "a")
    assert not namesake.tick()
    assert namesake.term is None


@pytest.mark.parametrize("seed", range(3))
def test_never_two_terms_are_believed_at_once(
    database: Database, clock: MovingClock, seed: int
) -> None:
    """Three candidates, pauses, lost replies, outages and resignations in any order."""
    random = Random(seed)
    databases = [UnreliableDatabase(database) for _ in range(3)]
    leases = [a_lease(faulty, clock, name) for faulty, name in zip(databases, "abc", strict=True)]
    epochs: list[int] = []
    for _ in range(150):
        lease = random.choice(leases)
        faulty = databases[leases.index(lease)]
        faulty.is_away = random.random() < 0.1
        faulty.replies_to_lose = int(random.random() < 0.1)
        if random.random() < 0.3:
            faulty.after_commit = [lambda: clock.advance(random.uniform(0.0, 12.0))]
        try:
            if random.random() < 0.05:
                lease.step_down()
            else:
                lease.tick()
        except Unreachable:
            pass
        faulty.after_commit.clear()
        believed = [held.term for held in leases if held.term is not None]
        assert len(believed) <= 1
        epochs += [term.epoch for term in believed]
        clock.advance(random.choice([0.0, 0.5, 2.0, 5.0]))
        assert sum(held.term is not None for held in leases) <= 1
    assert epochs == sorted(epochs)
    assert len(set(epochs)) > 3, "the lease hardly changed hands"


def test_a_dead_leader_is_followed_in_time_though_the_clock_was_put_back(
    database: Database, clock: MovingClock
) -> None:
    dead, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    assert dead.tick()
    clock.step(-HOUR)
    assert other.seconds_until_free() == LEASE.lease_seconds
    clock.advance(LEASE.lease_seconds - 0.001)
    assert (other.tick(), dead.term) == (False, None)
    clock.advance(0.001)
    assert other.tick()
    assert row(database).epoch == 2


def test_a_live_leader_goes_on_though_the_clock_was_put_back(
    database: Database, clock: MovingClock
) -> None:
    lease, other = a_lease(database, clock, "a"), a_lease(database, clock, "b")
    assert lease.tick()
    clock.step(-HOUR)
    other.seconds_until_free()
    for _ in range(5):
        clock.advance(LEASE.lease_renew_interval_seconds)
        assert lease.tick()
        assert other.seconds_until_free() == LEASE.lease_seconds
    assert row(database).epoch == 1


def test_after_clock_skew_a_lease_lasts_as_long_as_it_was_taken_for(
    database: Database, clock: MovingClock
) -> None:
    """Its holder believes in that length, also when the setting has changed."""
    long = a_lease(database, clock, "a", replace(LEASE, lease_seconds=60.0))
    assert long.tick()
    other = a_lease(database, clock, "b")
    assert other.seconds_until_free() == 60
    clock.step(-HOUR)
    assert other.seconds_until_free() == 60
