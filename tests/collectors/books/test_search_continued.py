"""Across runs, days and changes: where a job goes on, and when it begins anew."""

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from sqlalchemy import text

from support.moving_clock import MovingClock
from tsuzuki.collectors.books import quota
from tsuzuki.collectors.books.collect import collect
from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.queries.cursors import reset_collect_cursors_by_job
from tsuzuki.collectors.books.query_set import BookSearch, compute_query_set_hash
from tsuzuki.collectors.books.quota import CLOCKS_DIFFER
from tsuzuki.collectors.books.sandbox.google_books import error_fault, old_limit_error, volumes
from tsuzuki.collectors.books.search import Collected, SearchCollection
from tsuzuki.collectors.books.source import BookPage
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.cursor import StopReason
from tsuzuki.model.errors import Conflict
from tsuzuki.model.states import RunState
from tsuzuki.outward.errors import OutOfQuota
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind

from .books_fixture import BooksFixture


def age_cursors(books_fixture: BooksFixture, days: float) -> None:
    """Let the cursors have been written so long before the database's now."""
    then = books_fixture.database.clock.now() - timedelta(days=days)
    with books_fixture.database.write() as connection:
        connection.execute(
            text("UPDATE collect_cursor SET last_updated_at = :then"),
            {"then": then.strftime("%Y-%m-%d %H:%M:%S")},
        )


# --- from run to run ------------------------------------------------------------------------------


def test_the_cursor_is_kept_and_the_next_run_goes_on_from_it(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=60)
    books_fixture.collect(max_per_run=60)
    assert books_fixture.asked() == [(0, 40), (40, 20), (60, 40), (100, 20)]
    assert books_fixture.cursor() == (120, False)


def test_other_queries_have_another_hash_and_start_with_a_new_cursor(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.collect(queries=["python", "things"], max_per_run=40)
    assert {(c.key, c.start_index) for c in books_fixture.cursors()} == {
        (compute_query_set_hash(["python"]), 40),
        (compute_query_set_hash(["things", "python"]), 40),
    }
    assert [start for start, _ in books_fixture.asked()] == [0, 0]
    assert books_fixture.server.requests[-1].request.query["q"] == "python OR things"


def test_the_same_queries_in_another_order_go_on(books_fixture: BooksFixture) -> None:
    books_fixture.collect(queries=["python", "things"], max_per_run=40)
    books_fixture.collect(queries=[" things", "python "], max_per_run=40)
    assert [start for start, _ in books_fixture.asked()] == [0, 40]


def test_an_exhausted_search_is_skipped_with_a_warning_and_asks_nothing(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.source.catalogue = volumes(5)
    books_fixture.collect()
    asked = len(books_fixture.asked())
    result = books_fixture.collect()
    assert (result["skipped"], result["stop_reason"]) == ("exhausted", None)
    assert len(books_fixture.asked()) == asked
    assert books_fixture.cursor() == (5, True)


def test_after_a_reset_it_starts_at_zero(books_fixture: BooksFixture) -> None:
    books_fixture.source.catalogue = volumes(5)
    books_fixture.collect()
    with books_fixture.database.write() as connection:
        assert reset_collect_cursors_by_job(connection, "novelties") == 1
    assert books_fixture.cursors() == []
    result = books_fixture.collect()
    assert (result["stop_reason"], result["new_books"]) == ("exhausted", 0)
    assert books_fixture.asked()[-2:] == [(0, 40), (5, 40)]


@pytest.mark.parametrize("fault", [StandInFault(status=400), StandInFault(status=503, times=4)])
def test_after_an_error_it_is_not_exhausted_and_the_next_run_goes_on(
    books_fixture: BooksFixture, fault: StandInFault
) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.server.faults.add(fault)
    with pytest.raises(Exception, match="Google Books"):
        books_fixture.collect()
    books_fixture.server.faults.clear()
    assert books_fixture.collect()["stop_reason"] == "exhausted"
    assert len(books_fixture.stored()) == 150


# --- the list itself changes ----------------------------------------------------------------------


def test_another_shape_of_the_list_starts_anew_with_a_warning(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.collect(max_per_run=40, order_by="newest")
    assert [start for start, _ in books_fixture.asked()] == [0, 0]
    assert books_fixture.log[0].startswith(
        "[WARN][google-books][novelties] The list has changed "
        "(no options -> orderBy=newest): starting at 0"
    )
    books_fixture.collect(max_per_run=40, order_by="newest")
    assert books_fixture.asked()[-1] == (40, 40)
    assert books_fixture.server.requests[-1].request.query["orderBy"] == "newest"


def test_an_exhausted_search_of_another_shape_is_opened_again(books_fixture: BooksFixture) -> None:
    books_fixture.source.catalogue = volumes(5)
    books_fixture.collect()
    assert books_fixture.collect(lang_restrict="en")["stop_reason"] == "exhausted"
    assert len(books_fixture.asked()) == 4


@pytest.mark.parametrize("size", [5, 400], ids=["exhausted", "in the middle"])
def test_a_list_of_another_shape_starts_at_zero_even_if_the_first_run_is_stopped(
    books_fixture: BooksFixture, size: int
) -> None:
    books_fixture.source.catalogue = volumes(size)
    books_fixture.collect(max_per_run=80)
    books_fixture.server.faults.add(StandInFault(status=503, times=None))
    run = books_fixture.start(max_per_run=80, lang_restrict="en")
    run.when_said("Retrying", run.stop_signal.set)
    with pytest.raises(RunStopped):
        collect(books_fixture.collector_context, run.context)
    assert run.end(RunState.CANCELED)
    assert books_fixture.cursor() == (0, False)
    books_fixture.server.faults.clear()
    before = len(books_fixture.asked())
    books_fixture.collect(max_per_run=80, lang_restrict="en")
    assert books_fixture.asked()[before] == (0, 40)


def test_max_per_run_does_not_shape_the_list(books_fixture: BooksFixture) -> None:
    books_fixture.collect(max_per_run=40)
    books_fixture.collect(max_per_run=10, mail_limit=1)
    assert books_fixture.asked() == [(0, 40), (40, 10)]


def test_an_exhausted_search_may_be_looked_at_again_after_a_while(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.source.catalogue = volumes(5)
    books_fixture.collect(recheck_exhausted_after="7d")
    age_cursors(books_fixture, days=6)
    assert books_fixture.collect(recheck_exhausted_after="7d")["skipped"] == "exhausted"
    age_cursors(books_fixture, days=8)
    books_fixture.source.catalogue = volumes(6)
    result = books_fixture.collect(recheck_exhausted_after="7d")
    assert (result["new_books"], books_fixture.cursor()) == (1, (6, True))
    assert "checking again from startIndex=0" in books_fixture.log[0]


# --- quota ----------------------------------------------------------------------------------------


def test_the_quota_is_shared_by_all_jobs_and_renewed_with_the_day(
    books_fixture: BooksFixture, clock: MovingClock
) -> None:
    books_fixture.section["daily_limit"] = 3
    books_fixture.collect("first", max_per_run=80)
    assert books_fixture.collect("second")["stop_reason"] == "quota"
    assert books_fixture.collect("third")["pages"] == 0
    assert len(books_fixture.asked()) == 3
    clock.advance(24 * 3600)
    assert books_fixture.collect("second")["stop_reason"] == "quota"
    assert len(books_fixture.asked()) == 6


def test_a_limit_of_zero_asks_nothing(books_fixture: BooksFixture) -> None:
    books_fixture.section["daily_limit"] = 0
    assert books_fixture.collect()["stop_reason"] == "quota"
    assert books_fixture.asked() == []
    assert books_fixture.cursor() == (0, False)


def test_the_day_is_that_of_the_configured_zone() -> None:
    noon = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    pacific = BooksSection().allowance.day_of(noon)
    assert (pacific.name, pacific.ends_at) == ("2026-03-01", datetime(2026, 3, 2, 8, tzinfo=UTC))
    tokyo = BooksSection(quota_zone="Asia/Tokyo").allowance.day_of(noon + timedelta(hours=4))
    assert (tokyo.name, tokyo.ends_at) == ("2026-03-02", datetime(2026, 3, 2, 15, tzinfo=UTC))


def test_a_used_up_day_is_continued_by_one_run_at_its_end(books_fixture: BooksFixture) -> None:
    books_fixture.section["daily_limit"] = 1
    result = books_fixture.collect()
    books_fixture.collect()
    (run,) = books_fixture.waiting()
    assert run.scheduled_for == datetime(2026, 3, 2, 8, 5, tzinfo=UTC)
    assert result["resumes_at"] == "2026-03-02T08:05:00+00:00"
    assert run.job_name == "novelties"


@pytest.mark.parametrize(
    "error",
    [
        old_limit_error("dailyLimitExceeded", "Daily Limit Exceeded"),
        old_limit_error("quotaExceeded", "The request cannot be completed: Queries per day"),
        old_limit_error("quotaExceeded", "The request cannot be completed: quota exceeded"),
        old_limit_error("dailyLimitExceededUnreg", "Sign up to go on"),
    ],
)
def test_a_day_that_google_calls_used_up_is_used_up_for_every_job(
    books_fixture: BooksFixture, clock: MovingClock, error: dict[str, object]
) -> None:
    books_fixture.server.faults.add(error_fault(error))
    assert books_fixture.collect()["stop_reason"] == "quota"
    assert books_fixture.collect("other")["stop_reason"] == "quota"
    assert len(books_fixture.asked()) == 1
    with books_fixture.database.read() as connection:
        use = quota.use_of_today(connection, BooksSection().allowance, clock.now())
    assert (use.calls, use.left, use.refused_at) == (1, 0, clock.now())
    clock.advance(24 * 3600)
    assert books_fixture.collect()["stop_reason"] == "exhausted"


@pytest.mark.parametrize(
    "error",
    [
        old_limit_error("userRateLimitExceeded", "slow down"),
        old_limit_error("quotaExceeded", "Quota exceeded: Queries per minute per user"),
    ],
)
def test_an_older_servers_limit_of_a_minute_is_waited_for(
    books_fixture: BooksFixture, clock: MovingClock, error: dict[str, object]
) -> None:
    before = clock.now()
    books_fixture.server.faults.add(error_fault(error))
    assert books_fixture.collect(max_per_run=40)["stop_reason"] == "max_per_run"
    assert clock.now() - before >= timedelta(seconds=60)


def test_a_refused_day_is_continued_by_one_run_however_often_the_job_runs(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.server.faults.add(error_fault(old_limit_error("dailyLimitExceeded", "enough")))
    resumes_at = {books_fixture.collect()["resumes_at"] for _ in range(3)}
    (run,) = books_fixture.waiting()
    assert resumes_at == {run.scheduled_for.isoformat()}


def test_a_day_used_up_by_our_count_and_then_refused_is_continued_by_one_run(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.section["daily_limit"] = 1
    books_fixture.collect()
    books_fixture.section["daily_limit"] = 90
    books_fixture.server.faults.add(error_fault(old_limit_error("dailyLimitExceeded", "enough")))
    assert books_fixture.collect()["stop_reason"] == "quota"
    assert len(books_fixture.waiting()) == 1


def test_a_dry_run_collects_mails_nothing_and_asks_for_no_follow_up(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.section["daily_limit"] = 2
    run = books_fixture.start(arguments={"dry_run": True}, mail_limit=3)
    result = run.work()
    assert result["collect"]["stop_reason"] == "quota"
    assert "mail" not in result
    assert (books_fixture.cursor(), books_fixture.waiting()) == ((80, False), [])


class RefusingSource:
    """Says that the day is used up, and takes its time to say so."""

    def __init__(self, clock: MovingClock, *, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds
        self.requests = 0

    def page(self, _search: BookSearch, *, day_ends_at: datetime, **_where: int) -> BookPage:
        self.requests += 1
        self.clock.advance(self.seconds)
        raise OutOfQuota("enough", until=day_ends_at)


def collect_refused(books_fixture: BooksFixture, source: RefusingSource) -> Collected:
    run = books_fixture.start()
    collected = SearchCollection(
        run=run.context,
        database=books_fixture.database,
        options=BooksOptions(queries=["python"]),
        allowance=BooksSection().allowance,
        source=source,  # type: ignore[arg-type]
    ).collect()
    assert run.end(RunState.SUCCEEDED)
    return collected


@pytest.mark.parametrize(
    ("before_midnight", "seconds"),
    [(1, 30), (-0.5, 0), (-240, 0)],
    ids=["the answer comes after midnight", "at midnight", "minutes after midnight"],
)
def test_a_refusal_about_the_day_before_does_not_use_up_the_new_day(
    books_fixture: BooksFixture, clock: MovingClock, before_midnight: float, seconds: float
) -> None:
    midnight = BooksSection().allowance.day_of(clock.now()).ends_at
    clock.advance((midnight - clock.now()).total_seconds() - before_midnight)
    collected = collect_refused(books_fixture, RefusingSource(clock, seconds=seconds))
    assert (collected.stop_reason, collected.pages) == (StopReason.QUOTA, 0)
    assert collected.resumes_at == midnight + CLOCKS_DIFFER
    (run,) = books_fixture.waiting()
    assert run.scheduled_for == collected.resumes_at
    with books_fixture.database.read() as connection:
        use = quota.use_of_today(connection, BooksSection().allowance, clock.now())
    assert use.refused_at is None
    assert books_fixture.collect("other")["stop_reason"] == "exhausted"


def test_a_refusal_later_in_the_day_uses_it_up(
    books_fixture: BooksFixture, clock: MovingClock
) -> None:
    midnight = BooksSection().allowance.day_of(clock.now()).ends_at
    after = midnight + CLOCKS_DIFFER
    clock.advance((after - clock.now()).total_seconds())
    collected = collect_refused(books_fixture, RefusingSource(clock, seconds=0))
    assert collected.resumes_at == after + timedelta(days=1)
    assert books_fixture.collect("other")["pages"] == 0


# --- two at once, and taken away ------------------------------------------------------------------


def test_a_second_run_beside_the_first_asks_nothing_and_says_so(
    books_fixture: BooksFixture,
) -> None:
    books_fixture.server.faults.add(StandInFault(kind=StandInFaultKind.HANG, skip=1))
    first = books_fixture.start(max_per_run=80)
    thread = Thread(target=first.work)
    thread.start()
    try:
        while books_fixture.server.faults.held == 0:
            assert thread.is_alive()
        second = books_fixture.start(max_per_run=80)
        result = second.work()
    finally:
        books_fixture.server.faults.clear()
        thread.join()
    assert result["collect"]["skipped"] == "busy"
    assert second.log == [
        f"[google-books][novelties] Skipped: run {first.context.id} is collecting this search"
    ]
    assert books_fixture.asked() == [(0, 40), (40, 40)]
    assert books_fixture.cursor() == (80, False)


def test_a_reset_during_a_run_wins_over_its_next_page(books_fixture: BooksFixture) -> None:
    def reset() -> None:
        with books_fixture.database.write() as connection:
            reset_collect_cursors_by_job(connection, "novelties")

    run = books_fixture.start()
    run.when_said("Page 2", reset)
    with pytest.raises(Conflict, match="was reset while this run was collecting"):
        run.work()
    assert books_fixture.cursors() == []
    assert len(books_fixture.stored()) == 80
    assert books_fixture.collect()["stop_reason"] == "exhausted"


def test_a_run_that_waits_for_its_source_stops_when_asked(books_fixture: BooksFixture) -> None:
    books_fixture.server.faults.add(StandInFault(status=503, times=None))
    run = books_fixture.start()
    run.when_said("Retrying", run.stop_signal.set)
    with pytest.raises(RunStopped):
        collect(books_fixture.collector_context, run.context)
    assert len(books_fixture.asked()) == 1
