"""Which item is next, and what each outcome writes: chapter 3 of the design, exhaustively."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, inspect, select
from sqlalchemy.exc import IntegrityError

from collectors.feeds.stored_items import ALL_STATES, NOON, add_feed, add_item
from support.factories import add_job, add_worker, create_run, take_lead
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.queries import item_moves, items
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.tables import WaitingState, item_details, waiting_items
from tsuzuki.collectors.feeds.tables import items as items_table
from tsuzuki.model.run import RunRef
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment
from tsuzuki.store.sql.database import Database

RUN = 7
LATER = NOON + timedelta(hours=1)
RETRY_LIMIT = 3
DEFERRALS = list(ItemReason)[1:6]


def waiting_of(connection: Connection, item_id: int) -> dict[str, Any] | None:
    found = connection.execute(select(waiting_items).where(waiting_items.c.item_id == item_id))
    row = found.mappings().one_or_none()
    return None if row is None else dict(row)


def drawn(connection: Connection, feed_ids: list[int]) -> list[int]:
    """The items in the order in which one run draws them."""
    found = []
    while (item := items.draw(connection, feed_ids=feed_ids, run_id=RUN)) is not None:
        found.append(item.id)
    return found


def take(connection: Connection, feed_id: int) -> StoredItem:
    item = items.draw(connection, feed_ids=[feed_id], run_id=RUN)
    assert item is not None
    return item


# --- selection --------------------------------------------------------------------------------------


def test_the_pending_item_that_was_published_first_comes_first(feeds_database: Database) -> None:
    pending = ItemState(status=ItemStatus.PENDING)
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        add_item(connection, feed, checked_at=NOON - timedelta(days=9))
        newer = add_item(connection, feed, pending, published_at=NOON)
        older = add_item(connection, feed, pending, published_at=NOON - timedelta(days=1))
        assert drawn(connection, [feed])[:2] == [older, newer]


def test_without_a_pending_item_the_one_checked_longest_ago_comes_first(
    feeds_database: Database,
) -> None:
    deferred = ItemState(
        status=ItemStatus.DEFERRED, reason=ItemReason.PAGE_NOT_READY, retry_count=1
    )
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        new = add_item(connection, feed, checked_at=NOON)
        put_off = add_item(connection, feed, deferred, checked_at=NOON - timedelta(hours=1))
        assert drawn(connection, [feed]) == [put_off, new]


def expected_order(stored: list[tuple[int, ItemState, datetime, datetime]]) -> list[int]:
    """The rule of the design, said in the simplest way."""
    pending = [one for one in stored if one[1].status is ItemStatus.PENDING]
    others = [
        one for one in stored if one[1].status in (ItemStatus.UNPROCESSED, ItemStatus.DEFERRED)
    ]
    return [
        *(one[0] for one in sorted(pending, key=lambda one: (one[2], one[0]))),
        *(one[0] for one in sorted(others, key=lambda one: (one[3], one[0]))),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_over_several_feeds_is_drawn_in_the_order_of_the_rule(
    feeds_database: Database, seed: int
) -> None:
    random = Random(seed)
    processed = ItemState(status=ItemStatus.PROCESSED, reason=ItemReason.NONE)
    with feeds_database.write() as connection:
        feed_ids = [add_feed(connection, f"feed-{n}") for n in range(4)]
        known = []
        for _ in range(40):
            state = random.choice([*ALL_STATES, processed])
            published = NOON - timedelta(minutes=random.randrange(20))
            checked = NOON - timedelta(minutes=random.randrange(20))
            feed = random.choice(feed_ids)
            item = add_item(connection, feed, state, published_at=published, checked_at=checked)
            if feed != feed_ids[0]:
                known.append((item, state, published, checked))
        assert drawn(connection, feed_ids[1:]) == expected_order(known)


def test_what_waits_for_a_pause_a_person_or_another_run_is_not_drawn(
    feeds_database: Database,
) -> None:
    pending = ItemState(status=ItemStatus.PENDING)
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        add_item(connection, feed, waiting=WaitingState.BACKOFF, not_before=LATER)
        add_item(connection, feed, pending, waiting=WaitingState.APPROVAL)
        add_item(connection, feed, waiting=WaitingState.TAKEN, held_by_run=RUN + 1)
        ready = add_item(connection, feed)
        assert drawn(connection, [feed]) == [ready]


def test_an_item_is_not_drawn_twice_in_one_run_though_its_pause_is_over(
    feeds_database: Database,
) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        add_item(connection, feed)
        item = take(connection, feed)
        defer(connection, item, ItemReason.API_FAILED)
        assert items.end_backoff(connection, feed_ids=[feed], now=LATER) == 0
        assert items.end_backoff(connection, feed_ids=[feed], now=LATER + timedelta(hours=1)) == 1
        assert items.draw(connection, feed_ids=[feed], run_id=RUN) is None
        assert items.draw(connection, feed_ids=[feed], run_id=RUN + 1) is not None


def test_an_item_given_back_may_be_drawn_again(feeds_database: Database) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        add_item(connection, feed)
        before = take(connection, feed)
        item_moves.give_back(connection, before, run_id=RUN)
        assert take(connection, feed) == before


def test_two_connections_that_draw_at_once_never_take_the_same_item(
    feeds_database: Database,
) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        ids = [add_item(connection, feed) for _ in range(12)]
    taken: list[int] = []

    def draw_all(run_id: int) -> None:
        while True:
            with feeds_database.write() as connection:
                item = items.draw(connection, feed_ids=[feed], run_id=run_id)
            if item is None:
                return
            taken.append(item.id)

    _in_threads(*(lambda run_id=run_id: draw_all(run_id) for run_id in (1, 2, 3)))
    assert sorted(taken) == ids


def _in_threads(*works: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def test_what_a_run_held_that_is_no_longer_running_is_given_back(feeds_database: Database) -> None:
    job_id = add_job(feeds_database)
    add_worker(feeds_database, "worker-1")
    term = take_lead(feeds_database)
    running, ended = (create_run(feeds_database, job_id) for _ in range(2))
    with feeds_database.write() as connection:
        moves.assign(
            connection, term=term, assignments=[Assignment(run=running, worker_id="worker-1")]
        )
        (assigned,) = runs.get_many(connection, [running.id])
        started = RunRef(id=assigned.id, version=assigned.version)
        moves.start(connection, worker_id="worker-1", runs=[started])
        feed = add_feed(connection)
        kept = add_item(connection, feed, waiting=WaitingState.TAKEN, held_by_run=running.id)
        for holder in (ended.id, 99):
            add_item(
                connection,
                feed,
                waiting=WaitingState.TAKEN,
                held_by_run=holder,
                drawn_by_run=holder,
            )
        assert items.release_abandoned(connection, run_id=99) == 2
        assert kept not in drawn(connection, [feed])


# --- what each outcome writes -----------------------------------------------------------------------


@pytest.fixture
def feed_id(feeds_database: Database) -> int:
    with feeds_database.write() as connection:
        return add_feed(connection)


def test_a_valuable_item_becomes_pending_without_a_reason(
    feeds_database: Database, feed_id: int
) -> None:
    for before in ALL_STATES:
        if before.status is ItemStatus.PENDING:
            continue
        with feeds_database.write() as connection:
            published_at = NOON - timedelta(days=2)
            item_id = add_item(connection, feed_id, before, published_at=published_at)
            item = item_moves.move_to_pending(
                connection, take(connection, feed_id), run_id=RUN, now=LATER
            )
            after, waiting = stored(connection, item_id)
            assert after.state == ItemState(
                status=ItemStatus.PENDING, retry_count=before.retry_count
            )
            assert after.last_checked_at == LATER
            assert waiting is not None
            assert (waiting["order_at"], waiting["held_by_run"]) == (published_at, RUN)
            item_moves.finish_posted(connection, item, run_id=RUN, now=LATER)


def test_a_deferred_item_gets_its_reason_and_counts_and_over_the_limit_is_given_up(
    feeds_database: Database, feed_id: int
) -> None:
    for before, reason in product(ALL_STATES, DEFERRALS):
        with feeds_database.write() as connection:
            item_id = add_item(connection, feed_id, before)
            defer(connection, take(connection, feed_id), reason)
            after, waiting = stored(connection, item_id)
        count = before.retry_count + 1
        assert after.last_checked_at == LATER
        if count > RETRY_LIMIT:
            given_up = ItemReason.RETRY_LIMIT_EXCEEDED
            assert after.state == ItemState(
                status=ItemStatus.PROCESSED, reason=given_up, retry_count=count
            )
            assert waiting is None
            continue
        assert after.state == ItemState(
            status=ItemStatus.DEFERRED, reason=reason, retry_count=count
        )
        assert waiting is not None
        assert (waiting["state"], waiting["order_at"]) == (WaitingState.BACKOFF, LATER)
        assert (waiting["is_pending"], waiting["held_by_run"]) == (False, None)


def defer(connection: Connection, item: StoredItem, reason: ItemReason) -> None:
    item_moves.defer(
        connection,
        item,
        reason,
        retry_limit=RETRY_LIMIT,
        not_before=LATER + timedelta(hours=1),
        run_id=RUN,
        now=LATER,
    )


def stored(connection: Connection, item_id: int) -> tuple[StoredItem, dict[str, Any] | None]:
    item = items.get(connection, item_id)
    assert item is not None
    return item, waiting_of(connection, item_id)


def test_a_posted_item_is_processed_without_a_reason_and_waits_no_more(
    feeds_database: Database,
) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        item_id = add_item(connection, feed, ItemState(status=ItemStatus.PENDING, retry_count=2))
        item_moves.finish_posted(connection, take(connection, feed), run_id=RUN, now=LATER)
        after, waiting = stored(connection, item_id)
        assert after.state == ItemState(
            status=ItemStatus.PROCESSED, reason=ItemReason.NONE, retry_count=2
        )
        assert (after.last_checked_at, waiting) == (LATER, None)


def test_a_clock_that_was_put_back_does_not_put_the_last_check_back(
    feeds_database: Database,
) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        item_id = add_item(connection, feed, checked_at=LATER)
        item_moves.move_to_pending(connection, take(connection, feed), run_id=RUN, now=NOON)
        assert stored(connection, item_id)[0].last_checked_at == LATER


def test_a_run_that_does_not_hold_an_item_cannot_move_it(feeds_database: Database) -> None:
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        add_item(connection, feed)
        item = take(connection, feed)
    moves_of = {
        "pending": lambda c: item_moves.move_to_pending(c, item, run_id=RUN + 1, now=LATER),
        "back": lambda c: item_moves.give_back(c, item, run_id=RUN + 1),
        "held": lambda c: item_moves.hold_for_approval(c, item, run_id=RUN + 1),
    }
    for move in moves_of.values():
        with pytest.raises(item_moves.NotHeld), feeds_database.write() as connection:
            move(connection)


# --- what the schema refuses ------------------------------------------------------------------------

LAWFUL = {
    *((status, None) for status in (0, 2, 3)),
    *((1, reason) for reason in range(1, 6)),
    (3, 0),
    (3, 6),
}


def refused(database: Database, **changes: Any) -> bool:
    """Whether the schema will not have an item with these values."""
    row = {
        "url": f"https://news.example/{changes}",
        "title": "Article",
        "published_at": NOON,
        "status": 0,
        "retry_count": 0,
        "created_at": NOON,
        "last_checked_at": NOON,
        **changes,
    }
    try:
        with database.write() as connection:
            connection.execute(insert(items_table).values(row))
    except IntegrityError:
        return True
    return False


def test_the_schema_holds_which_reason_goes_with_which_state(feeds_database: Database) -> None:
    for status, reason in product(range(-1, 5), [None, *range(-1, 8)]):
        is_lawful = (status, reason) in LAWFUL
        assert refused(feeds_database, status=status, reason=reason) is not is_lawful


def test_every_column_but_the_reason_must_have_a_value(feeds_database: Database) -> None:
    for column in items_table.c:
        if column.name not in ("id", "reason"):
            assert refused(feeds_database, **{column.name: None})
    assert refused(feeds_database, retry_count=-1)
    assert refused(feeds_database, last_checked_at=NOON - timedelta(seconds=1))
    assert not refused(feeds_database)
    assert refused(feeds_database), "a link is there once"


def test_the_indexes_have_the_names_of_the_design(feeds_database: Database) -> None:
    with feeds_database.read() as connection:
        found = {
            index["name"]: (index["column_names"], bool(index["unique"]))
            for index in inspect(connection).get_indexes("items")
        }
    assert found == {
        "idx_items_url": (["url"], True),
        "idx_items_status_last_checked_at": (["status", "last_checked_at"], False),
        "idx_items_status_published_at": (["status", "published_at"], False),
    }


def test_an_id_is_never_used_again(feeds_database: Database) -> None:
    processed = ItemState(status=ItemStatus.PROCESSED, reason=ItemReason.NONE)
    with feeds_database.write() as connection:
        feed = add_feed(connection)
        first = add_item(connection, feed, processed)
        connection.execute(delete(item_details))
        connection.execute(delete(items_table))
        assert add_item(connection, feed, processed) > first
