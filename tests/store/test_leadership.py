"""Who leads: one at a time, a new epoch each time, measured by the database's clock."""

from datetime import timedelta

from support.factories import take_lead
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.store import leadership
from tsuzuki.store.leadership import Leadership, Term
from tsuzuki.store.sql.database import Database


def take(database: Database, holder: str = "b", lease_seconds: float = 10.0) -> Term | None:
    with database.write() as connection:
        return leadership.take(connection, holder=holder, lease_seconds=lease_seconds)


def renew(database: Database, term: Term, lease_seconds: float = 10.0) -> bool:
    with database.write() as connection:
        return leadership.renew(connection, term=term, lease_seconds=lease_seconds)


def release(database: Database, term: Term) -> bool:
    with database.write() as connection:
        return leadership.release(connection, term=term)


def current(database: Database) -> Leadership:
    with database.read() as connection:
        return leadership.current(connection)


def test_at_first_no_process_leads(database: Database) -> None:
    now = current(database)
    assert (now.epoch, now.holder, now.is_valid) == (0, None, False)


def test_a_leader_holds_the_lease_for_as_long_as_it_took_it(
    database: Database, clock: MovingClock
) -> None:
    assert take(database, "a") == Term(holder="a", epoch=1)
    assert current(database) == Leadership(
        epoch=1,
        holder="a",
        lease_expires_at=clock.now() + timedelta(seconds=10),
        taken_at=clock.now(),
        is_valid=True,
    )


def test_a_lease_that_lasts_cannot_be_taken(database: Database, clock: MovingClock) -> None:
    assert take(database, "a")
    clock.advance(9.999)
    assert take(database, "b") is None
    assert take(database, "a") is None
    assert current(database).holder == "a"


def test_a_lease_that_ran_out_is_free_and_the_epoch_grows(
    database: Database, clock: MovingClock
) -> None:
    assert take(database, "a")
    clock.advance(10)
    assert not current(database).is_valid
    assert take(database, "b") == Term(holder="b", epoch=2)


def test_the_same_holder_gets_a_new_epoch_when_it_comes_back(
    database: Database, clock: MovingClock
) -> None:
    first = take(database, "a")
    clock.advance(10)
    second = take(database, "a")
    assert first is not None
    assert second == Term(holder="a", epoch=2)
    assert not renew(database, first)


def test_a_renewal_lengthens_the_lease_and_keeps_the_epoch(
    database: Database, clock: MovingClock
) -> None:
    term = take_lead(database, lease_seconds=10)
    taken_at = clock.now()
    for _ in range(5):
        clock.advance(6)
        assert renew(database, term)
    now = current(database)
    assert (now.epoch, now.taken_at) == (1, taken_at)
    assert now.lease_expires_at == clock.now() + timedelta(seconds=10)


def test_a_lease_that_expired_is_not_renewed_though_it_is_free(
    database: Database, clock: MovingClock
) -> None:
    term = take_lead(database, lease_seconds=10)
    clock.advance(10)
    assert not renew(database, term)


def test_a_renewal_needs_the_right_holder_and_epoch(database: Database) -> None:
    term = take_lead(database)
    assert not renew(database, Term(holder="x", epoch=term.epoch))
    assert not renew(database, Term(holder=term.holder, epoch=term.epoch - 1))
    assert not renew(database, Term(holder=term.holder, epoch=term.epoch + 1))
    assert renew(database, term)


def test_after_a_leader_stepped_down_another_can_lead_at_once(database: Database) -> None:
    term = take_lead(database)
    assert release(database, term)
    assert not current(database).is_valid
    assert not renew(database, term)
    assert take(database) == Term(holder="b", epoch=2)


def test_only_the_holder_can_step_down(database: Database) -> None:
    term = take_lead(database)
    assert not release(database, Term(holder="x", epoch=term.epoch))
    assert not release(database, Term(holder=term.holder, epoch=term.epoch - 1))
    assert renew(database, term)


def test_a_leader_can_be_deposed_once(database: Database) -> None:
    term = take_lead(database)
    with database.write() as connection:
        assert leadership.depose(connection) == term.epoch
    with database.write() as connection:
        assert leadership.depose(connection) is None
    assert not renew(database, term)
    assert take(database) == Term(holder="b", epoch=2)


def test_a_wall_clock_that_is_set_back_does_not_free_a_lease(
    database: Database, clock: MovingClock
) -> None:
    take_lead(database, lease_seconds=10)
    clock.step(-3600)
    assert take(database) is None


def test_of_ten_who_take_the_lead_at_once_one_gets_it(database: Database) -> None:
    for round_number in range(1, 6):
        answers = at_once(10, lambda number: take(database, f"leader-{number}"))
        (term,) = [answer for answer in answers if answer is not None]
        assert term.epoch == round_number
        now = current(database)
        assert (now.holder, now.epoch) == (term.holder, term.epoch)
        assert release(database, term)


def test_the_database_reads_its_own_clock(live_database: Database) -> None:
    term = take_lead(live_database, lease_seconds=30)
    before = current(live_database)
    assert before.is_valid
    assert renew(live_database, term, 60)
    assert current(live_database).lease_expires_at > before.lease_expires_at
    assert renew(live_database, term, 0.0)
    assert not current(live_database).is_valid


def test_each_term_leaves_a_row_with_when_and_how_it_ended(
    database: Database, clock: MovingClock
) -> None:
    first = take(database, "a")
    assert first
    ran_out_at = clock.now() + timedelta(seconds=10)
    clock.advance(60)
    second = take(database, "b")
    assert second
    clock.advance(3)
    assert renew(database, second)
    assert release(database, second)
    released_at = clock.now()
    take(database, "c")
    with database.read() as connection:
        terms = leadership.past_terms(connection, limit=10)
    assert [(term.epoch, term.holder, term.ended_at) for term in terms] == [
        (3, "c", None),
        (2, "b", released_at),
        (1, "a", ran_out_at),
    ]
