"""The next page is asked for while the one before it is being committed: what that may and may not do."""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from support.daemons import eventually
from support.moving_clock import MovingClock
from tsuzuki.collectors.books import quota
from tsuzuki.collectors.books.collect import collect
from tsuzuki.collectors.books.options import BooksSection
from tsuzuki.collectors.books.quota import Calls
from tsuzuki.collectors.books.sandbox.google_books import volumes
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import RunState
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.store.sql.database import Database

from .books_fixture import BooksFixture

ALLOWANCE = BooksSection().allowance


@contextmanager
def before_the_commit(database: Database, page: int, act: Callable[[], object]) -> Iterator[None]:
    """Do something between the last statement of a page's transaction and its commit."""
    writes = itertools.count()  # the first one takes the search

    def listener(connection: Connection) -> None:
        is_write = connection.get_execution_options().get("tsuzuki_write", False)
        if is_write and next(writes) == page:
            act()

    event.listen(database.engine, "commit", listener)
    try:
        yield
    finally:
        event.remove(database.engine, "commit", listener)


def calls_counted(database: Database) -> int:
    with database.read() as connection:
        return quota.use_of_today(connection, ALLOWANCE, database.clock.now()).calls


def test_a_page_is_asked_for_while_the_one_before_it_is_committed(
    books_fixture: BooksFixture,
) -> None:
    run = books_fixture.start(max_per_run=120)
    books_fixture.server.faults.add(StandInFault(kind=StandInFaultKind.HANG, skip=2))

    def until_the_third_page_is_asked_for() -> None:
        eventually(lambda: books_fixture.server.faults.held == 1 or None, what="the third page")
        assert len(books_fixture.stored()) == 40
        books_fixture.server.faults.clear()

    with before_the_commit(books_fixture.database, 2, until_the_third_page_is_asked_for):
        run.work()
    assert books_fixture.asked() == [(0, 40), (40, 40), (80, 40)]
    assert len(books_fixture.stored()) == 120


def test_the_second_page_is_not_asked_for_before_its_call_is_counted_for_good(
    books_fixture: BooksFixture,
) -> None:
    run = books_fixture.start(max_per_run=80)
    asked: list[int] = []

    def remember() -> None:
        asked.append(len(books_fixture.asked()))

    with before_the_commit(books_fixture.database, 1, remember):
        run.work()
    assert asked == [1]


@pytest.mark.parametrize(
    ("books", "max_per_run", "pages"), [(150, 200, 5), (150, 120, 3), (150, 130, 4), (0, 200, 1)]
)
def test_in_the_end_exactly_the_calls_that_were_made_are_counted(
    books_fixture: BooksFixture, books: int, max_per_run: int, pages: int
) -> None:
    books_fixture.source.catalogue = volumes(books)
    books_fixture.collect(max_per_run=max_per_run)
    assert len(books_fixture.asked()) == calls_counted(books_fixture.database) == pages


def test_a_call_that_was_taken_and_not_needed_is_given_back(books_fixture: BooksFixture) -> None:
    books_fixture.source.totals = (0, 0, 500, 500)  # it promises more than there is
    books_fixture.source.catalogue = volumes(80)
    assert books_fixture.collect()["stop_reason"] == "exhausted"
    assert len(books_fixture.asked()) == calls_counted(books_fixture.database)


def test_a_call_that_was_taken_pays_for_asking_again(books_fixture: BooksFixture) -> None:
    books_fixture.section["daily_limit"] = 4
    books_fixture.server.faults.add(StandInFault(status=503, skip=2))
    result = books_fixture.collect()
    assert (result["stop_reason"], result["pages"]) == ("quota", 3)
    assert len(books_fixture.asked()) == calls_counted(books_fixture.database) == 4


def test_calls_go_back_to_the_day_they_were_taken_from(
    books_database: Database, clock: MovingClock
) -> None:
    calls = Calls(ALLOWANCE)
    with books_database.write() as connection:
        calls.take(connection, clock.now(), up_to=1)
    assert calls_counted(books_database) == 1
    yesterday = clock.now()
    clock.advance(24 * 3600)
    with books_database.write() as connection:
        calls.take(connection, clock.now(), up_to=2)
        calls.give_back(connection)
    assert len(calls) == 0
    assert calls_counted(books_database) == 0
    with books_database.read() as connection:
        assert quota.use_of_today(connection, ALLOWANCE, yesterday).calls == 0


def test_a_call_that_was_counted_yesterday_is_counted_anew_today(
    books_database: Database, clock: MovingClock
) -> None:
    calls = Calls(ALLOWANCE)
    with books_database.write() as connection:
        calls.take(connection, clock.now(), up_to=1)
    yesterday = clock.now()
    clock.advance(24 * 3600)
    with books_database.write() as connection:
        calls.take(connection, clock.now(), up_to=1)
    assert (len(calls), calls_counted(books_database)) == (1, 1)
    with books_database.read() as connection:
        assert quota.use_of_today(connection, ALLOWANCE, yesterday).calls == 0


def test_a_commit_that_fails_loses_its_page_and_the_one_asked_for_ahead_and_nothing_else(
    books_fixture: BooksFixture,
) -> None:
    def fail() -> None:
        raise OperationalError("COMMIT", {}, sqlite3.OperationalError("disk I/O error"))

    run = books_fixture.start()
    with before_the_commit(books_fixture.database, 2, fail), pytest.raises(Unreachable):
        collect(books_fixture.collector_context, run.context)
    run.end(RunState.FAILED)
    assert [start for start, _ in books_fixture.asked()] == [0, 40, 80]
    assert books_fixture.cursor() == (40, False)
    assert len(books_fixture.stored()) == 40
    assert calls_counted(books_fixture.database) == 3
    assert books_fixture.collect()["stop_reason"] == "exhausted"
    assert len(books_fixture.stored()) == 150
    assert [start for start, _ in books_fixture.asked()][3:] == [40, 80, 120, 150]


def test_a_run_that_is_asked_to_stop_drops_what_it_has_asked_for_ahead(
    books_fixture: BooksFixture,
) -> None:
    run = books_fixture.start()
    run.when_said("Page 2", run.stop_signal.set)
    with pytest.raises(RunStopped):
        collect(books_fixture.collector_context, run.context)
    assert books_fixture.cursor() == (80, False)
    assert len(books_fixture.stored()) == 80
    assert [start for start, _ in books_fixture.asked()] == [0, 40, 80]
    run.end(RunState.FAILED)
    assert books_fixture.collect()["stop_reason"] == "exhausted"
    assert len(books_fixture.stored()) == 150
