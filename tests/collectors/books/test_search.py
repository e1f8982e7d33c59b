"""Page after page: what is asked for, where the cursor goes, why it stops, and what is said about it."""

import pytest

from support.moving_clock import MovingClock
from tsuzuki.collectors.books.query_set import compute_query_set_hash, short_hash
from tsuzuki.collectors.books.sandbox.google_books import error_fault, limit_error, volume, volumes
from tsuzuki.engine.executors.failures import failure_of
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.store.runs import runs

from .books_fixture import BooksFixture

HASH = short_hash(compute_query_set_hash(["python"]))


def said(books_fixture: BooksFixture, words: str) -> bool:
    return any(words in line for line in books_fixture.log)


def test_paging_asks_several_times_and_the_start_index_moves_on(
    books_fixture: BooksFixture,
) -> None:
    result = books_fixture.collect(max_per_run=100)
    assert books_fixture.asked() == [(0, 40), (40, 40), (80, 20)]
    assert books_fixture.cursor() == (100, False)
    assert (result["stop_reason"], result["pages"], result["new_books"]) == ("max_per_run", 3, 100)
    assert len(books_fixture.stored()) == 100


def test_the_log_says_what_operators_look_for(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=80)
    assert books_fixture.log == [
        "[google-books][novelties] Page 1: startIndex=0, returned=40, totalItems=150",
        "[google-books][novelties] Page 2: startIndex=40, returned=40, totalItems=150",
        "[google-books][novelties] Stopped: max_per_run reached (80/80), next startIndex=80",
    ]
    books_fixture.source.catalogue = volumes(120)
    books_fixture.collect()
    assert books_fixture.log[-1] == (
        "[WARN][google-books][novelties] Exhausted: startIndex=120 >= totalItems=120 "
        f"(query_set_hash={HASH}...)"
    )
    books_fixture.collect()
    assert books_fixture.log == [f"[novelties] Skipped: exhausted (query_set_hash={HASH})"]


def test_nothing_is_overfetched_when_max_per_run_is_below_a_page(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=10)
    assert books_fixture.asked() == [(0, 10)]
    assert books_fixture.cursor() == (10, False)


def test_max_per_run_stops_and_does_not_exhaust(books_fixture: BooksFixture) -> None:
    books_fixture.source.catalogue = volumes(40)
    result = books_fixture.collect(max_per_run=40)
    assert (result["stop_reason"], books_fixture.cursor()) == ("max_per_run", (40, False))


def test_the_total_exhausts_only_after_an_empty_answer_confirms_it(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.source.catalogue = volumes(60)
    result = books_fixture.collect()
    assert books_fixture.asked() == [(0, 40), (40, 40), (60, 40)]
    assert (result["stop_reason"], books_fixture.cursor()) == ("exhausted", (60, True))


def test_an_empty_answer_exhausts_and_leaves_the_start_index(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.source.catalogue = volumes(30)
    result = books_fixture.collect()
    assert (result["stop_reason"], result["returned"]) == ("exhausted", 0)
    assert books_fixture.cursor() == (40, True)


def test_a_total_of_zero_is_exhausted_from_the_beginning(books_fixture: BooksFixture) -> None:
    books_fixture.source.catalogue = []
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("exhausted", (0, True))
    assert books_fixture.asked() == [(0, 40)]


def test_a_total_that_is_too_low_ends_nothing(books_fixture: BooksFixture) -> None:
    books_fixture.source.totals = (-140, -150, 20, -100)
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("exhausted", (150, True))
    assert len(books_fixture.stored()) == 150


def test_an_empty_page_that_contradicts_its_total_is_asked_for_once_more(
    books_fixture: BooksFixture,
) -> None:
    hole = '{"kind": "books#volumes", "totalItems": 150}'
    books_fixture.server.faults.add(StandInFault(path="*?*startIndex=40&*", body=hole))
    books_fixture.collect()
    assert books_fixture.asked()[:3] == [(0, 40), (40, 40), (40, 40)]
    assert len(books_fixture.stored()) == 150


def test_a_source_that_stays_empty_against_its_total_is_exhausted_and_not_asked_for_ever(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.server.faults.add(
        StandInFault(body='{"kind": "books#volumes", "totalItems": 150}', times=None)
    )
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("exhausted", (40, True))
    assert said(books_fixture, "Exhausted: startIndex=40, twice nothing although totalItems=150")


def test_short_pages_move_the_cursor_by_what_they_held(books_fixture: BooksFixture) -> None:
    books_fixture.source.page_size_max = 7
    books_fixture.source.catalogue = volumes(20)
    books_fixture.collect()
    assert [start for start, _ in books_fixture.asked()] == [0, 7, 14, 20]
    assert len(books_fixture.stored()) == 20


def test_a_book_that_comes_on_two_pages_is_kept_once(books_fixture: BooksFixture) -> None:
    books_fixture.source.catalogue = [*volumes(40), *volumes(40), volume(7)]
    result = books_fixture.collect()
    assert (result["returned"], result["new_books"], books_fixture.cursor()) == (81, 40, (81, True))


def test_an_item_without_a_usable_id_is_left_out_and_counted(books_fixture: BooksFixture) -> None:
    nameless = {"kind": "books#volume", "volumeInfo": {"title": "python"}}
    books_fixture.source.catalogue = [nameless, {**volume(1), "id": "a\u0000b"}, volume(2)]
    books_fixture.collect()
    assert books_fixture.cursor() == (3, True)
    assert books_fixture.stored() == {"vol000000002"}
    assert said(books_fixture, "2 of them have no usable ID")


def test_the_daily_limit_stops_and_does_not_exhaust(books_fixture: BooksFixture) -> None:
    books_fixture.section["daily_limit"] = 2
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("quota", (80, False))
    assert len(books_fixture.asked()) == 2
    assert books_fixture.log[-1] == (
        "[google-books][novelties] Stopped: quota limit reached, next startIndex=80"
    )


def test_the_last_call_of_a_day_stops_by_quota_before_max_per_run(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.section["daily_limit"] = 2
    result = books_fixture.collect(max_per_run=80)
    assert (result["stop_reason"], books_fixture.cursor()) == ("quota", (80, False))
    assert (result["resumes_at"], books_fixture.waiting()) == (None, [])


def test_an_empty_page_by_the_last_call_of_a_day_stops_by_quota_and_exhausts_with_the_next(
    books_fixture: BooksFixture, clock: MovingClock
) -> None:
    books_fixture.source.catalogue = volumes(10)
    books_fixture.section["daily_limit"] = 2
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("quota", (10, False))
    assert len(books_fixture.waiting()) == 1
    clock.advance(24 * 3600)
    assert books_fixture.collect()["stop_reason"] == "exhausted"
    assert books_fixture.cursor() == (10, True)


def test_a_call_that_is_left_when_a_run_stops_is_left_for_others(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.section["daily_limit"] = 3
    assert books_fixture.collect(max_per_run=80)["stop_reason"] == "max_per_run"
    assert books_fixture.collect("other")["pages"] == 1


def test_warnings_of_a_search_are_in_the_log_of_the_process_too(
    books_fixture: BooksFixture, caplog: pytest.LogCaptureFixture
) -> None:
    books_fixture.source.catalogue = []
    for _ in range(2):
        books_fixture.collect()
    found = [record.getMessage().partition(" run=")[0] for record in caplog.records]
    assert found == [
        "[WARN][google-books][novelties] Exhausted: startIndex=0 >= totalItems=0 "
        f"(query_set_hash={HASH}...)",
        f"[novelties] Skipped: exhausted (query_set_hash={HASH})",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_googles_own_limit_of_a_day_stops_and_does_not_exhaust(books_fixture: BooksFixture) -> None:
    books_fixture.source.calls_per_day = 1
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("quota", (40, False))


def test_an_api_error_keeps_the_cursor_open_where_it_is(books_fixture: BooksFixture) -> None:
    books_fixture.server.faults.add(
        StandInFault(status=400, skip=1, body='{"error": {"code": 400}}')
    )
    with pytest.raises(SourceRefused):
        books_fixture.collect()
    assert books_fixture.cursor() == (40, False)
    assert books_fixture.log[-1] == (
        "[google-books][novelties] Stopped: API error, preserving startIndex=40"
    )
    assert len(books_fixture.stored()) == 40


def test_an_error_at_the_very_first_page_saves_a_cursor_at_zero(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.server.faults.add(StandInFault(status=404))
    with pytest.raises(SourceRefused):
        books_fixture.collect()
    assert books_fixture.cursor() == (0, False)


BROKEN = {
    "a server error": StandInFault(status=503, times=None),
    "a page for people": StandInFault(kind=StandInFaultKind.HTML, times=None),
    "half an answer": StandInFault(kind=StandInFaultKind.CUT, times=None),
    "a reset": StandInFault(kind=StandInFaultKind.RESET, times=None),
    "an empty body": StandInFault(times=None),
    "another kind": StandInFault(body='{"kind": "books#volume", "totalItems": 0}', times=None),
    "no total": StandInFault(body='{"kind": "books#volumes"}', times=None),
    "a total in words": StandInFault(
        body='{"kind": "books#volumes", "totalItems": "0"}', times=None
    ),
    "a negative total": StandInFault(
        body='{"kind": "books#volumes", "totalItems": -1}', times=None
    ),
    "items that are no list": StandInFault(
        body='{"kind": "books#volumes", "totalItems": 0, "items": {}}', times=None
    ),
    "an error with status 200": StandInFault(body='{"error": {"code": 500}}', times=None),
    "a list": StandInFault(body="[]", times=None),
    "a number too long": StandInFault(body="1" * 10_000, times=None),
    "nested a million deep": StandInFault(body="[" * 1_000_000, times=None),
}


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_never_an_empty_page(
    books_fixture: BooksFixture, fault: StandInFault
) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.server.faults.add(fault)
    with pytest.raises(SourceUnavailable):
        books_fixture.collect()
    assert books_fixture.cursor() == (40, False)
    assert len(books_fixture.asked()) == 1 + 4


def test_a_source_that_recovers_is_asked_again_and_every_call_counts(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.section["daily_limit"] = 5
    books_fixture.server.faults.add(StandInFault(status=502, times=2))
    result = books_fixture.collect()
    assert (result["stop_reason"], books_fixture.cursor()) == ("quota", (120, False))
    assert len(books_fixture.asked()) == 5


def test_the_limit_of_a_minute_is_waited_for(books_fixture: BooksFixture) -> None:
    before = books_fixture.database.clock.now()
    books_fixture.server.faults.add(error_fault(limit_error("minute"), skip=1))
    result = books_fixture.collect(max_per_run=80)
    assert result["stop_reason"] == "max_per_run"
    assert 60 <= (books_fixture.database.clock.now() - before).total_seconds() < 120


def test_a_source_that_wants_a_long_rest_is_left_to_a_later_run(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.server.faults.add(StandInFault(status=503, headers={"Retry-After": "3600"}))
    with pytest.raises(SourceUnavailable) as caught:
        books_fixture.collect()
    assert caught.value.retry_after_seconds == 3600
    assert len(books_fixture.asked()) == 1


def test_a_result_says_from_where_to_where_the_cursor_moved(books_fixture: BooksFixture) -> None:
    first = books_fixture.collect(max_per_run=40)
    second = books_fixture.collect(max_per_run=60)
    books_fixture.server.faults.add(StandInFault(status=403))
    with pytest.raises(SourceRefused) as caught:
        books_fixture.collect()
    failed = failure_of(caught.value).result["collect"]
    moved = [
        (found["start_index_before"], found["start_index"]) for found in (first, second, failed)
    ]
    assert moved == [(0, 40), (40, 100), (100, 100)]
    assert failed["stop_reason"] == "error"


def test_progress_is_stored_with_the_page(books_fixture: BooksFixture) -> None:
    run = books_fixture.start(max_per_run=100)
    run.work()
    with books_fixture.database.read() as connection:
        stored = runs.get(connection, run.context.id)
    assert stored is not None
    assert (stored.progress_processed, stored.progress_total) == (100, 100)


@pytest.mark.parametrize("length", [120, 20_000])
def test_a_page_longer_than_asked_is_cut_to_what_was_asked(
    books_fixture: BooksFixture, length: int
) -> None:
    books_fixture.source.catalogue = [
        {"id": f"v{n}", "volumeInfo": {"title": "python"}} for n in range(length)
    ]
    books_fixture.source.page_size_min = length
    result = books_fixture.collect(max_per_run=100)
    assert (result["returned"], result["new_books"], result["start_index"]) == (100, 100, 100)
    assert result["total_items"] == length
    assert result["stop_reason"] == "max_per_run"
    assert len(books_fixture.stored()) == 100
    assert books_fixture.cursor() == (100, False)
    assert books_fixture.asked() == [(0, 40), (40, 40), (80, 20)]
