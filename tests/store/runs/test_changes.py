"""Changes since a position: each exactly once, for any reader that continues from what another has written down."""

import random
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from support.databases import opened
from support.factories import WORKER, add_job, add_worker, create_run, run_in_state, take_lead
from support.moving_clock import MovingClock
from support.query_plans import last_sent, ways_to
from support.threads import at_once, in_background
from support.waiting import wait_until_blocked
from tsuzuki.model.states import RunState
from tsuzuki.services.changes import Changes, PositionLost
from tsuzuki.store import pruning
from tsuzuki.store.runs import changes, moves
from tsuzuki.store.runs.changes import FIRST, Position
from tsuzuki.store.sql.database import Database

Seen = list[tuple[int, int]]


def cancel(database: Database, job_id: int) -> int:
    run = create_run(database, job_id)
    with database.write() as connection:
        assert moves.cancel(connection, operator="me", runs=[run])
    return run.id


def read(database: Database, known: str, *, page_changes: int = 500) -> tuple[Seen, str]:
    """What is new since a written position, and the next one: as another process would."""
    seen: Seen = []
    reader = Changes(database=database)
    until = reader.now()
    for page in reader.between(reader.known(known), until, page_changes=page_changes):
        seen += [(change.transition.run_id, change.transition.version) for change in page.changes]
        known = str(page.position)
    return seen, known


def now(database: Database) -> str:
    return str(Changes(database=database).now())


def test_what_came_since_is_told_once_with_its_job(live_database: Database) -> None:
    database = live_database
    job_id = add_job(database)
    start = now(database)
    assert read(database, start)[0] == []
    run_id = cancel(database, job_id)
    (page,) = Changes(database=database).between(
        Changes(database=database).known(start), Changes(database=database).now()
    )
    (change,) = page.changes
    assert (change.job_name, change.transition.run_id) == ("hello", run_id)
    assert change.transition.to_state is RunState.CANCELED
    assert read(database, str(page.position))[0] == []


def test_a_page_can_be_continued_from_any_place_in_it(live_database: Database) -> None:
    """Also after more has come meanwhile."""
    job_id = add_job(live_database)
    start = now(live_database)
    expected = [(cancel(live_database, job_id), 2) for _ in range(5)]
    reader = Changes(database=live_database)
    until = reader.now()
    pages = list(reader.between(reader.known(start), until, page_changes=2))
    assert [len(page.changes) for page in pages] == [2, 2, 1]
    expected.append((cancel(live_database, job_id), 2))
    for number, page in enumerate(pages, start=1):
        seen, _ = read(live_database, str(page.position), page_changes=2)
        assert seen == expected[2 * number :] or (number == 3 and seen == expected[5:])


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_move_that_commits_late_is_told_after_newer_ones(
    live_database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is older than that of what was told already."""
    monkeypatch.setattr(changes, "MARGIN", timedelta(0))
    job_id = add_job(live_database)
    late = create_run(live_database, job_id)
    start = now(live_database)
    with opened(database_url) as other:
        with other.write() as connection:
            assert moves.cancel(connection, operator="me", runs=[late])
            newer = cancel(live_database, job_id)
            seen, between = read(live_database, start)
            assert seen == [(newer, 2)]
            assert read(live_database, between)[0] == []
        assert read(live_database, between)[0] == [(late.id, 2)]
        assert read(live_database, start)[0] == [(late.id, 2), (newer, 2)]
        _, after = read(live_database, between)
        assert read(live_database, after)[0] == []


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_transaction_that_waits_for_a_row_is_told_when_it_is_done(
    live_database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began before the wait, and has written nothing yet: only its lock shows that it will."""
    monkeypatch.setattr(changes, "MARGIN", timedelta(0))
    job_id = add_job(live_database)
    run = create_run(live_database, job_id)

    def cancel_waiting() -> None:
        with opened(database_url) as waiting, waiting.write() as connection:
            connection.execute(text("SELECT id FROM tsuzuki_job_runs FOR UPDATE"))
            assert moves.cancel(connection, operator="me", runs=[run])

    with opened(database_url) as other, other.write() as connection:
        connection.execute(text("SELECT id FROM tsuzuki_job_runs FOR UPDATE"))
        blocked = in_background(cancel_waiting)
        wait_until_blocked(live_database)
        known = now(live_database)
    blocked.result(30)
    assert read(live_database, known)[0] == [(run.id, 2)]


def test_nothing_is_missed_or_told_twice_while_many_write(
    live_database: Database, database_url: str
) -> None:
    """Writers hold their transactions for different times; the reader writes its position down after each look."""
    add_job(live_database)
    start = now(live_database)
    writers, each = 4, 12
    done = threading.Event()

    def write(number: int) -> None:
        if number == writers:
            seen.extend(follow())
            return
        chance = random.Random(number)
        pause = threading.Event()
        with opened(database_url) as own:
            for _ in range(each):
                run = create_run(own, 1)
                with own.write() as connection:
                    assert moves.cancel(connection, operator="me", runs=[run])
                    pause.wait(chance.random() / 100)
        finished.append(number)
        if len(finished) == writers:
            done.set()

    def follow() -> Seen:
        found: Seen = []
        known = start
        while True:
            was_done = done.is_set()
            new, known = read(live_database, known, page_changes=3)
            found += new
            if was_done:
                return found

    seen: Seen = []
    finished: list[int] = []
    at_once(writers + 1, write)
    assert len(seen) == len(set(seen)) == writers * each
    assert sorted(seen) == sorted(read(live_database, start)[0])


def test_what_was_pruned_makes_older_positions_lost(database: Database, clock: MovingClock) -> None:
    term = take_lead(database)
    add_worker(database, WORKER)
    old = now(database)
    clock.advance(10)
    run = run_in_state(database, RunState.CANCELED, term)
    clock.advance(10)
    with database.write() as connection:
        pruning.mark(connection, term=term, run_ids=[run.id])
        assert pruning.delete_marked(connection, term=term, run_ids=[run.id]) == 1
        assert pruning.delete_marked(connection, term=term, run_ids=[run.id]) == 0
    with pytest.raises(PositionLost):
        read(database, old)
    known = now(database)
    clock.advance(10)
    later = run_in_state(database, RunState.CANCELED, term)
    assert read(database, known)[0] == [(later.id, 2)]


@pytest.mark.parametrize("back_seconds", [0.3, 20, 3600])
def test_every_move_is_told_once_after_the_clock_was_set_back(
    database: Database, clock: MovingClock, back_seconds: float
) -> None:
    term = take_lead(database, lease_seconds=100_000)
    run_in_state(database, RunState.CANCELED, term)
    known = now(database)
    expected: Seen = []
    for step in (-back_seconds, 0.1, -back_seconds, 2 * back_seconds):
        clock.step(step)
        expected += [(run_in_state(database, RunState.CANCELED, term).id, 2) for _ in range(3)]
        seen, known = read(database, known, page_changes=2)
        assert seen == expected[-3:]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_moves_are_told_in_the_order_of_their_commits(
    database: Database, clock: MovingClock
) -> None:
    job_id = add_job(database)
    start = now(database)
    expected = []
    for _ in range(5):
        clock.step(-7)
        expected.append((cancel(database, job_id), 2))
    assert read(database, start, page_changes=2)[0] == expected


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_number_is_not_given_again_after_its_move_was_deleted(
    database: Database, clock: MovingClock
) -> None:
    term = take_lead(database)
    run = run_in_state(database, RunState.CANCELED, term)
    known = now(database)
    with database.write() as connection:
        pruning.mark(connection, term=term, run_ids=[run.id])
        assert pruning.delete_marked(connection, term=term, run_ids=[run.id]) == 1
    later = run_in_state(database, RunState.CANCELED, term)
    assert read(database, known)[0] == [(later.id, 2)]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_position_of_the_file_before_a_backup_was_restored_is_lost(database: Database) -> None:
    job_id = add_job(database)
    for _ in range(3):
        cancel(database, job_id)
    known = now(database)
    position = changes.parse(known)
    assert position is not None
    other = replace(position, key=position.key._replace(run_id=4711))
    cancel(database, job_id)
    with pytest.raises(PositionLost):
        read(database, str(other))
    with pytest.raises(PositionLost):
        read(database, str(replace(position, seq=position.seq + 100)))
    assert len(read(database, known)[0]) == 1


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_a_position_of_another_server_is_lost(live_database: Database) -> None:
    far = Position(oldest=FIRST.at + timedelta(days=1), key=FIRST, snapshot=f"{2**40}:{2**40}:")
    with pytest.raises(PositionLost):
        read(live_database, str(far))
    with pytest.raises(PositionLost):
        read(live_database, "s.0.0.0.0")


@pytest.mark.parametrize(
    "written",
    [
        "",
        "s",
        "s.1.2",
        "s.1.2.3",
        "s.1.2.3.4.5",
        "s.-1.2.3.4",
        "s.1.999999999999999999.1.1",
        "p.1:2:.5.3:3:.1.2",
        "p.x:2:.5",
        "p.1:2:;DROP.5",
        "s.\uff11.2.3.4",
        "p.5:4:.5",
        "p.1:4:3,2.5",
        "p.1:4:4.5",
        "p.0:4:.5",
        "p.1:4:,.5",
        f"p.1:{2**63}:.5",
    ],
)
def test_what_is_no_position_is_none(written: str) -> None:
    assert changes.parse(written) is None


@pytest.mark.parametrize("written", ["s.4.5.6.7", "p.1:4:2,3.99", "p.1:4:.99.5:5:.7.8.9"])
def test_a_position_is_read_as_it_was_written(written: str) -> None:
    assert str(changes.parse(written)) == written


def test_only_recent_history_is_searched(database: Database, clock: MovingClock) -> None:
    """On PostgreSQL by the index on the time, on SQLite by that on the number and without a sort."""
    term = take_lead(database)
    run_in_state(database, RunState.CANCELED, term)
    known = Changes(database=database).now()
    with database.read() as connection:
        if not database.is_sqlite:
            connection.execute(text("SET enable_seqscan = off"))
        with last_sent(connection) as sent:
            until = changes.now(connection)
            changes.between(connection, known, until, limit=10)
        ways = ways_to(connection, "tsuzuki_job_run_transitions", sent[-1])
        if database.is_sqlite:
            plan = connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {sent[-1].statement}", sent[-1].parameters
            )
            assert not [row.detail for row in plan if "TEMP B-TREE" in row.detail]
    assert len(ways) == 1
    index = (
        "tsuzuki_ix_job_run_transitions_seq"
        if database.is_sqlite
        else "tsuzuki_ix_job_run_transitions_at"
    )
    assert index in ways[0]
