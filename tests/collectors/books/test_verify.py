"""Verification of books: a dropped book is found in the ledger or at the source, within the quota."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import text

from support.moving_clock import MovingClock
from support.verifying import faults, verified
from tsuzuki.collectors.books.options import BooksOptions
from tsuzuki.collectors.books.queries import ledger, quota
from tsuzuki.collectors.books.sandbox.google_books import error_fault, limit_error, volumes
from tsuzuki.collectors.books.verify import verify
from tsuzuki.model.job import JobSpec
from tsuzuki.model.verification import Verified
from tsuzuki.sandbox.faults import StandInFault

from .books_fixture import BooksFixture

DAY = 86_400.0


def job(name: str = "novelties", **options: Any) -> JobSpec:
    said = BooksOptions.model_validate({"queries": ["python"], **options})
    return JobSpec(name=name, handler="books", options=said.model_dump(mode="json"))


def found(books_fixture: BooksFixture, *jobs: JobSpec, calls_max: int = 20) -> list[Verified]:
    books_fixture.server.forget_requests()
    return verified(
        verify, books_fixture.collector_context, jobs=jobs or [job()], calls_max=calls_max
    )


def change(books_fixture: BooksFixture, *statements: str) -> None:
    """Change rows past the references that the databases keep."""
    database = books_fixture.database
    if database.path is not None:
        with closing(sqlite3.connect(database.path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
        return
    with database.write() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in statements:
            connection.execute(text(statement))


def calls(books_fixture: BooksFixture) -> int:
    section = books_fixture.collector_context.read_section()
    day = section.allowance.day_of(books_fixture.database.clock.now())  # type: ignore[union-attr]
    with books_fixture.database.read() as connection:
        return quota.get_use(connection, day.name)[0]


def test_where_nothing_was_collected_there_is_nothing_to_verify(
    books_fixture: BooksFixture,
) -> None:
    assert found(books_fixture) == []
    assert books_fixture.asked() == []


def test_what_was_collected_is_whole_in_the_ledger_and_at_the_source(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=100)
    before = calls(books_fixture)
    stored, at_source = found(books_fixture)
    assert (stored.subject, stored.is_ok, stored.compared) == ("ledger", True, 100)
    assert (at_source.subject, at_source.is_ok, at_source.compared) == ("novelties", True, 100)
    assert at_source.note is None
    assert sorted(books_fixture.asked()) == [(0, 40), (40, 40), (80, 20)]
    assert calls(books_fixture) - before == 3


def test_a_dropped_book_that_the_ledger_still_names_is_found_without_a_call(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=100)
    change(books_fixture, "DELETE FROM tsuzuki_books WHERE volume_id = 'vol000000005'")
    (stored,) = found(books_fixture, calls_max=0)
    lost = ("missing", "volume vol000000005, found by job novelties, is not stored")
    assert faults([stored]) == [lost]
    assert books_fixture.asked() == []


def test_a_book_that_was_dropped_with_every_trace_is_found_at_the_source(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=100)
    change(
        books_fixture,
        "DELETE FROM tsuzuki_book_finds WHERE volume_id = 'vol000000045'",
        "DELETE FROM tsuzuki_books WHERE volume_id = 'vol000000045'",
    )
    stored, at_source = found(books_fixture)
    assert stored.is_ok
    assert faults([at_source]) == [
        (
            "missing",
            "volume vol000000045 (The Python Book of Things, Part 45), number 46 of the list "
            "was not collected",
        )
    ]


def test_a_book_that_was_changed_is_named(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=40)
    change(
        books_fixture, "UPDATE tsuzuki_books SET title = 'Other' WHERE volume_id = 'vol000000003'"
    )
    (stored,) = found(books_fixture, calls_max=0)
    name = "volume vol000000003 (Other) differs from the collected data"
    assert faults([stored]) == [("changed", name)]


def test_a_mail_that_was_dropped_is_named_with_its_books(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=40)
    change(
        books_fixture,
        "INSERT INTO tsuzuki_book_deliveries (job_name, volume_id, mail_id, position)"
        " VALUES ('novelties', 'vol000000001', 99, 0), ('novelties', 'gone', 99, 1)",
    )
    (stored,) = found(books_fixture, calls_max=0)
    assert faults([stored]) == [
        ("missing", "volume gone, emailed by job novelties, is not stored"),
        ("missing", "the email of job novelties with volume gone is not stored"),
        ("missing", "the email of job novelties with volume vol000000001 is not stored"),
    ]


def test_the_ledger_is_read_page_by_page(
    books_fixture: BooksFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    books_fixture.collect(max_per_run=100)
    monkeypatch.setattr(ledger, "PAGE", 7)
    change(books_fixture, "DELETE FROM tsuzuki_books WHERE volume_id < 'vol000000030'")
    (stored,) = found(books_fixture, calls_max=0)
    assert (stored.compared, stored.faults, len(stored.named)) == (70, 30, 20)


def test_calls_are_bounded_and_move_on_with_the_days(
    books_fixture: BooksFixture, clock: MovingClock
) -> None:
    books_fixture.source.catalogue = volumes(400)
    books_fixture.collect(max_per_run=400)
    asked: set[tuple[int, int]] = set()
    for _ in range(5):
        at_source = found(books_fixture, calls_max=2)[1]
        assert len(books_fixture.asked()) == 2
        assert at_source.note == "compared 2 of 10 pages with Google Books"
        assert at_source.is_ok
        asked |= {*books_fixture.asked()}
        clock.advance(DAY)
    assert asked == {(start, 40) for start in range(0, 400, 40)}


def test_calls_are_shared_by_the_jobs(books_fixture: BooksFixture) -> None:
    books_fixture.collect("one", max_per_run=200, queries=["python"])
    books_fixture.collect("two", max_per_run=200, queries=["things"])
    jobs = [job("one"), job("two", queries=["things"])]
    _, one, two = found(books_fixture, *jobs, calls_max=3)
    assert one.note == "compared 1 of 4 pages with Google Books"
    assert two.note == "compared 2 of 4 pages with Google Books"


def test_the_daily_quota_ends_the_calls_and_is_no_fault(books_fixture: BooksFixture) -> None:
    books_fixture.section = {"daily_limit": 4}
    books_fixture.collect(max_per_run=100)  # three calls
    at_source = found(books_fixture)[1]
    assert at_source.note == "compared 1 of 3 pages with Google Books: today's quota is used up"
    assert at_source.is_ok
    assert calls(books_fixture) == 4
    assert len(books_fixture.asked()) == 1


def test_a_day_that_the_source_refuses_is_recorded_for_every_job(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=100)
    books_fixture.server.faults.add(error_fault(limit_error("day"), times=None))
    at_source = found(books_fixture)[1]
    assert at_source.is_ok
    assert "quota is used up" in str(at_source.note)
    assert len(books_fixture.asked()) == 1
    assert "today's quota is used up" in str(found(books_fixture)[1].note)
    assert books_fixture.asked() == []


def test_a_source_that_does_not_answer_is_no_proof(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=100)
    books_fixture.server.faults.add(StandInFault(status=503, times=None))
    stored, at_source = found(books_fixture)
    assert stored.is_ok
    assert not at_source.is_ok
    assert at_source.problem is not None


def test_a_job_whose_list_options_were_changed_is_not_compared_with_the_former_list(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=100)
    assert [one.subject for one in found(books_fixture, job(order_by="newest"))] == ["ledger"]
