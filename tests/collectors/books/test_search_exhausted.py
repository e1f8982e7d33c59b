"""Whatever a source answers and whatever crashes: only a good empty answer exhausts a search, what was
stored is what was served, and every call was counted before it was made.

A script of answers is played to the real collection, on a real database: pages, totals that wander,
errors, limits, and runs that die before or after a page was stored. The source is the only thing that is
not real here, so that thousands of stories can be told.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from support.databases import SqliteFolder, opened
from support.moving_clock import MovingClock
from tsuzuki.collectors.books import quota
from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.options import BooksOptions
from tsuzuki.collectors.books.query_set import BookSearch
from tsuzuki.collectors.books.quota import Allowance
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks
from tsuzuki.collectors.books.search import SearchCollection
from tsuzuki.collectors.books.source import BookPage
from tsuzuki.collectors.books.tables import COMPONENT
from tsuzuki.model.states import RunState
from tsuzuki.outward.errors import (
    OutOfQuota,
    RateLimitedUntil,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database

from .books_fixture import BooksFixture, open_books_fixture

CALLS_PER_DAY = 9
ALLOWANCE = Allowance(calls_per_day=CALLS_PER_DAY, zone=ZoneInfo("UTC"))


class Killed(BaseException):
    """The process is gone, in the middle of a question."""


@dataclass(frozen=True)
class Good:
    """A page of the list as it is now, with a total that may be wrong."""

    wander: int = 0
    short: int = 40


@dataclass(frozen=True)
class Bad:
    """Anything but a page."""

    kind: str


STEPS = st.one_of(
    st.builds(
        Good,
        wander=st.integers(-200, 200) | st.just(0),
        short=st.integers(0, 40) | st.just(40),
    ),
    st.builds(Bad, st.sampled_from("refused unwell minute day killed grown shrunk".split())),
)


@dataclass
class ScriptedSource:
    """Plays a script, then the truth. Remembers what it served, and what it said last."""

    script: list[Good | Bad]
    clock: MovingClock
    size: int = 100
    served: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)
    last_was_good_and_empty: bool = False
    asked_today: int = 0
    counted: Callable[[], int] = lambda: 0

    def page(
        self, _search: BookSearch, *, start_index: int, max_results: int, day_ends_at: datetime
    ) -> BookPage:
        self.asked_today += 1
        assert self.asked_today <= self.counted() <= CALLS_PER_DAY
        self.served |= self.in_flight  # it asks on, so what it was given is stored
        self.in_flight = set()
        self.last_was_good_and_empty = False
        step = self.script.pop(0) if self.script else Good()
        if isinstance(step, Good):
            return self._page(step, start_index, max_results)
        match step.kind:
            case "refused":
                raise SourceRefused("no")
            case "unwell":
                raise SourceUnavailable("ill")
            case "minute":
                raise RateLimitedUntil("slow", until=self.clock.now() + timedelta(seconds=60))
            case "day":
                raise OutOfQuota("enough", until=day_ends_at)
            case "killed":
                raise Killed
            case "grown":
                self.size += 30
            case _:
                self.size = max(self.size - 30, 0)
        return self._page(Good(), start_index, max_results)

    def _page(self, step: Good, start_index: int, max_results: int) -> BookPage:
        numbers = range(start_index, min(start_index + max_results, self.size))[: step.short]
        books = [Book(volume_id=f"v{number}", title="t") for number in numbers]
        self.in_flight = {book.volume_id for book in books}
        self.last_was_good_and_empty = not books
        return BookPage(
            books=tuple(enumerate(books)),
            returned=len(books),
            total_items=max(self.size + step.wander, 0),
        )


@pytest.fixture(scope="module")
def story_books(sqlite_folder: SqliteFolder) -> Iterator[BooksFixture]:
    clock = MovingClock()
    url = sqlite_folder.create((ENGINE, COMPONENT))
    with opened(url, clock) as database, StandIn(GoogleBooks()) as server:
        yield open_books_fixture(database, GoogleBooks(), server)


def forget_everything(database: Database) -> None:
    with database.write() as connection:
        for table in (
            "tsuzuki_book_finds",
            "tsuzuki_books",
            "tsuzuki_books_searches",
            "collect_cursor",
            "tsuzuki_books_quota_days",
        ):
            connection.execute(text(f"DELETE FROM {table}"))


@contextmanager
def a_life(books_fixture: BooksFixture, source: ScriptedSource) -> Iterator[SearchCollection]:
    """One run, from its start to its end or its death."""
    run = books_fixture.start(max_per_run=90)
    yield SearchCollection(
        run=run.context,
        database=books_fixture.database,
        options=BooksOptions(queries=["python"], max_per_run=90),
        allowance=ALLOWANCE,
        source=source,  # type: ignore[arg-type]
    )
    run.end(RunState.SUCCEEDED)


def live_through(books_fixture: BooksFixture, source: ScriptedSource) -> None:
    """A run a day, until the script has been played or the search is over, and two days more."""
    source.counted = lambda: counted_today(books_fixture)
    for _ in range(len(source.script) + 2):
        source.asked_today, lost = 0, 0
        with a_life(books_fixture, source) as collection:
            try:
                collection.collect()
            except Killed:
                source.in_flight = set()
                lost = 1  # a call that was taken for the page after the one it died of
        source.served |= source.in_flight
        source.in_flight = set()
        check(books_fixture, source)
        assert 0 <= counted_today(books_fixture) - source.asked_today <= lost
        books_fixture.database.clock.advance(86_400)  # type: ignore[attr-defined]


def counted_today(books_fixture: BooksFixture) -> int:
    with books_fixture.database.read() as connection:
        return quota.use_of_today(connection, ALLOWANCE, books_fixture.database.clock.now()).calls


def check(books_fixture: BooksFixture, source: ScriptedSource) -> None:
    assert books_fixture.stored() == source.served
    _, is_exhausted = books_fixture.cursor() if books_fixture.cursors() else (0, False)
    if is_exhausted:
        assert source.last_was_good_and_empty


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(STEPS, max_size=12))
def test_only_a_good_empty_answer_exhausts_and_what_was_served_is_stored(
    story_books: BooksFixture, script: list[Good | Bad]
) -> None:
    forget_everything(story_books.database)
    clock = story_books.database.clock
    assert isinstance(clock, MovingClock)
    source = ScriptedSource(script=list(script), clock=clock)
    live_through(story_books, source)
