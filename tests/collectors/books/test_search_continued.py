"""Across runs, days and changes: where a job goes on, and when it begins anew."""

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from sqlalchemy import text

from support.moving_clock import MovingClock
from tsuzuki.collectors.books.collect import collect
from tsuzuki.collectors.books.options import BooksSection
from tsuzuki.collectors.books.queries import quota
from tsuzuki.collectors.books.queries.cursors import reset_collect_cursors_by_job
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.errors import Conflict
from tsuzuki.sandbox.faults import Fault, FaultKind
from tsuzuki.sandbox.google_books import error_fault, old_limit_error, volumes

from .shop import Shop


def age_cursors(shop: Shop, days: float) -> None:
    """Let the cursors have been written so long before the database's now."""
    then = shop.database.clock.now() - timedelta(days=days)
    with shop.database.write() as connection:
        connection.execute(
            text("UPDATE collect_cursor SET last_updated_at = :then"),
            {"then": then.strftime("%Y-%m-%d %H:%M:%S")},
        )


# --- from run to run ------------------------------------------------------------------------------


def test_the_cursor_is_kept_and_the_next_run_goes_on_from_it(shop: Shop) -> None:
    shop.collect(max_per_run=60)
    shop.collect(max_per_run=60)
    assert shop.asked() == [(0, 40), (40, 20), (60, 40), (100, 20)]
    assert shop.cursor() == (120, False)


def test_other_queries_have_another_hash_and_begin_with_a_new_cursor(shop: Shop) -> None:
    shop.collect(max_per_run=40)
    shop.collect(queries=["python", "things"], max_per_run=40)
    assert {(c.key, c.start_index) for c in shop.cursors()} == {
        (compute_query_set_hash(["python"]), 40),
        (compute_query_set_hash(["things", "python"]), 40),
    }
    assert [start for start, _ in shop.asked()] == [0, 0]
    assert shop.server.requests[-1].request.query["q"] == "python OR things"


def test_the_same_queries_in_another_order_go_on(shop: Shop) -> None:
    shop.collect(queries=["python", "things"], max_per_run=40)
    shop.collect(queries=[" things", "python "], max_per_run=40)
    assert [start for start, _ in shop.asked()] == [0, 40]


def test_an_exhausted_search_is_skipped_with_a_warning_and_asks_nothing(shop: Shop) -> None:
    shop.source.catalogue = volumes(5)
    shop.collect()
    asked = len(shop.asked())
    result = shop.collect()
    assert (result["skipped"], result["stop_reason"]) == ("exhausted", None)
    assert len(shop.asked()) == asked
    assert shop.cursor() == (5, True)


def test_after_a_reset_it_begins_at_the_start(shop: Shop) -> None:
    shop.source.catalogue = volumes(5)
    shop.collect()
    with shop.database.write() as connection:
        assert reset_collect_cursors_by_job(connection, "novelties") == 1
    assert shop.cursors() == []
    result = shop.collect()
    assert (result["stop_reason"], result["new_books"]) == ("exhausted", 0)
    assert shop.asked()[-2:] == [(0, 40), (5, 40)]


@pytest.mark.parametrize("fault", [Fault(status=400), Fault(status=503, times=4)])
def test_after_an_error_it_is_not_exhausted_and_the_next_run_goes_on(
    shop: Shop, fault: Fault
) -> None:
    shop.collect(max_per_run=40)
    shop.server.faults.add(fault)
    with pytest.raises(Exception, match="Google Books"):
        shop.collect()
    shop.server.faults.clear()
    assert shop.collect()["stop_reason"] == "exhausted"
    assert len(shop.stored()) == 150


# --- the list itself changes ----------------------------------------------------------------------


def test_another_shape_of_the_list_begins_anew_with_a_warning(shop: Shop) -> None:
    shop.collect(max_per_run=40)
    shop.collect(max_per_run=40, order_by="newest")
    assert [start for start, _ in shop.asked()] == [0, 0]
    assert shop.log[0].startswith(
        "[WARN][google-books][novelties] The list is another one now "
        "(no options -> orderBy=newest): starting at 0"
    )
    shop.collect(max_per_run=40, order_by="newest")
    assert shop.asked()[-1] == (40, 40)
    assert shop.server.requests[-1].request.query["orderBy"] == "newest"


def test_an_exhausted_search_of_another_shape_is_opened_again(shop: Shop) -> None:
    shop.source.catalogue = volumes(5)
    shop.collect()
    assert shop.collect(lang_restrict="en")["stop_reason"] == "exhausted"
    assert len(shop.asked()) == 4


def test_max_per_run_does_not_shape_the_list(shop: Shop) -> None:
    shop.collect(max_per_run=40)
    shop.collect(max_per_run=10, mail_limit=1)
    assert shop.asked() == [(0, 40), (40, 10)]


def test_an_exhausted_search_may_be_looked_at_again_after_a_while(shop: Shop) -> None:
    shop.source.catalogue = volumes(5)
    shop.collect(recheck_exhausted_after="7d")
    age_cursors(shop, days=6)
    assert shop.collect(recheck_exhausted_after="7d")["skipped"] == "exhausted"
    age_cursors(shop, days=8)
    shop.source.catalogue = volumes(6)
    result = shop.collect(recheck_exhausted_after="7d")
    assert (result["new_books"], shop.cursor()) == (1, (6, True))
    assert "looking again from startIndex=0" in shop.log[0]


# --- quota ----------------------------------------------------------------------------------------


def test_the_quota_is_shared_by_all_jobs_and_renewed_with_the_day(
    shop: Shop, clock: MovingClock
) -> None:
    shop.section["daily_limit"] = 3
    shop.collect("first", max_per_run=80)
    assert shop.collect("second")["stop_reason"] == "quota"
    assert shop.collect("third")["pages"] == 0
    assert len(shop.asked()) == 3
    clock.advance(24 * 3600)
    assert shop.collect("second")["stop_reason"] == "quota"
    assert len(shop.asked()) == 6


def test_a_limit_of_zero_asks_nothing(shop: Shop) -> None:
    shop.section["daily_limit"] = 0
    assert shop.collect()["stop_reason"] == "quota"
    assert shop.asked() == []
    assert shop.cursor() == (0, False)


def test_the_day_is_that_of_the_configured_zone() -> None:
    noon = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    pacific = BooksSection().allowance.day_of(noon)
    assert (pacific.name, pacific.ends_at) == ("2026-03-01", datetime(2026, 3, 2, 8, tzinfo=UTC))
    tokyo = BooksSection(quota_zone="Asia/Tokyo").allowance.day_of(noon + timedelta(hours=4))
    assert (tokyo.name, tokyo.ends_at) == ("2026-03-02", datetime(2026, 3, 2, 15, tzinfo=UTC))


def test_a_used_up_day_is_continued_by_one_run_at_its_end(shop: Shop) -> None:
    shop.section["daily_limit"] = 1
    result = shop.collect()
    shop.collect()
    (run,) = shop.waiting()
    assert run.scheduled_for == datetime(2026, 3, 2, 8, tzinfo=UTC)
    assert result["resumes_at"] == "2026-03-02T08:00:00+00:00"
    assert run.job_name == "novelties"


@pytest.mark.parametrize(
    "error",
    [
        old_limit_error("dailyLimitExceeded", "Daily Limit Exceeded"),
        old_limit_error("quotaExceeded", "The request cannot be completed: Queries per day"),
    ],
)
def test_a_day_that_google_calls_used_up_is_used_up_for_every_job(
    shop: Shop, clock: MovingClock, error: dict[str, object]
) -> None:
    shop.server.faults.add(error_fault(error))
    assert shop.collect()["stop_reason"] == "quota"
    assert shop.collect("other")["stop_reason"] == "quota"
    assert len(shop.asked()) == 1
    with shop.database.read() as connection:
        use = quota.use_of_today(connection, BooksSection().allowance, clock.now())
    assert (use.calls, use.left, use.refused_at) == (1, 0, clock.now())
    clock.advance(24 * 3600)
    assert shop.collect()["stop_reason"] == "exhausted"


def test_an_older_servers_limit_of_a_minute_is_waited_for(shop: Shop, clock: MovingClock) -> None:
    before = clock.now()
    shop.server.faults.add(error_fault(old_limit_error("userRateLimitExceeded", "slow down")))
    assert shop.collect(max_per_run=40)["stop_reason"] == "max_per_run"
    assert clock.now() - before >= timedelta(seconds=60)


# --- two at once, and taken away ------------------------------------------------------------------


def test_a_second_run_beside_the_first_asks_nothing_and_says_so(shop: Shop) -> None:
    shop.server.faults.add(Fault(kind=FaultKind.HANG, skip=1))
    first = shop.start(max_per_run=80)
    thread = Thread(target=first.work)
    thread.start()
    try:
        while shop.server.faults.held == 0:
            assert thread.is_alive()
        second = shop.start(max_per_run=80)
        result = second.work()
    finally:
        shop.server.faults.clear()
        thread.join()
    assert result["collect"]["skipped"] == "busy"
    assert second.log == [
        f"[google-books][novelties] Skipped: run {first.context.id} is collecting this search"
    ]
    assert shop.asked() == [(0, 40), (40, 40)]
    assert shop.cursor() == (80, False)


def test_a_reset_during_a_run_wins_over_its_next_page(shop: Shop) -> None:
    def reset() -> None:
        with shop.database.write() as connection:
            reset_collect_cursors_by_job(connection, "novelties")

    run = shop.start()
    run.when_said("Page 2", reset)
    with pytest.raises(Conflict, match="was reset while this run was collecting"):
        run.work()
    assert shop.cursors() == []
    assert len(shop.stored()) == 80
    assert shop.collect()["stop_reason"] == "exhausted"


def test_a_run_that_waits_for_its_source_stops_when_asked(shop: Shop) -> None:
    shop.server.faults.add(Fault(status=503, times=None))
    run = shop.start()
    run.when_said("Asking again", run.stop_signal.set)
    with pytest.raises(RunStopped):
        collect(shop.collector_context, run.context)
    assert len(shop.asked()) == 1
