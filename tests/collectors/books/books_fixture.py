"""A stand-in for the source, a real database, and runs of a books job without an engine around them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.factories import WORKER, add_worker, take_lead
from support.handler_runs import HandlerRun, define_job, start_run
from tsuzuki.collectors.books.collect import collect
from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.queries.books import BookFilter, find
from tsuzuki.collectors.books.queries.cursors import list_collect_cursors
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.model.cursor import Cursor
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.collector import CollectorContext

KEY = "k3y-that-is-secret"


class BooksRun(HandlerRun[WorkerRunIO]):
    """One run under way."""

    books_fixture: "BooksFixture"

    def work(self) -> dict[str, Any]:
        """Let the handler do its work, and the run end as it ends."""
        try:
            result = collect(self.books_fixture.collector_context, self.context)
        except Exception:
            assert self.end(RunState.FAILED)
            raise
        assert self.end(RunState.SUCCEEDED)
        return result


@dataclass
class BooksFixture:
    database: Database
    source: GoogleBooks = field(repr=False)
    server: StandIn = field(repr=False)
    term: Term
    section: dict[str, Any] = field(default_factory=dict)
    last: BooksRun | None = None

    @property
    def collector_context(self) -> CollectorContext:
        said = {"base_url": f"{self.server.url}/books/v1", "api_key": KEY, **self.section}
        return CollectorContext(
            database=self.database,
            workspace=Path(),
            read_section=lambda **_only: BooksSection.model_validate(said),
        )

    def start(
        self,
        name: str = "novelties",
        *,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> BooksRun:
        """A run of the job `name`, whose options are said anew each time, as in an edited file."""
        said = BooksOptions.model_validate({"queries": ["python"], **options})
        job_id = define_job(self.database, name, "books", said.model_dump(mode="json"))
        started = start_run(
            self.database, self.term, job_id, arguments=arguments, run_io=WorkerRunIO
        )
        self.last = BooksRun(**vars(started))
        self.last.books_fixture = self
        return self.last

    def collect(self, name: str = "novelties", **options: Any) -> dict[str, Any]:
        """One whole run, and what it says about its collection."""
        return self.start(name, **options).work()["collect"]  # type: ignore[no-any-return]

    @property
    def log(self) -> list[str]:
        """What the last run said."""
        assert self.last is not None
        return self.last.log

    def cursors(self) -> list[Cursor]:
        with self.database.read() as connection:
            return list_collect_cursors(connection)

    def cursor(self) -> tuple[int, bool]:
        """Where the only search is, and whether it is exhausted."""
        (cursor,) = self.cursors()
        return cursor.start_index, cursor.is_exhausted

    def stored(self, name: str = "novelties") -> set[str]:
        with self.database.read() as connection:
            found = find(connection, BookFilter(job_name=name), limit=100_000)
        return {one.book.volume_id for one in found}

    def asked(self) -> list[tuple[int, int]]:
        """Start index and size of every page that was asked for."""
        return [
            (int(seen.request.query["startIndex"]), int(seen.request.query["maxResults"]))
            for seen in self.server.requests
        ]

    def waiting(self) -> list[Any]:
        """The runs that are yet to come."""
        with self.database.read() as connection:
            return runs.find(connection, RunFilter(states=frozenset({RunState.PENDING})))


def open_books_fixture(database: Database, source: GoogleBooks, server: StandIn) -> BooksFixture:
    add_worker(database, WORKER, capacity=1000)
    return BooksFixture(database=database, source=source, server=server, term=take_lead(database))
