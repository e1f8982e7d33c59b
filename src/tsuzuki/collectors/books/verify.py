"""Verification of books: the ledger is whole, and what Google Books lists up to each cursor was found.

The ledger is compared in full. Google Books is asked for some pages only, within the number of calls and the daily
quota; each call is counted as that of a collection. Which pages they are moves on with the days, so that in time all
are compared.
"""

from collections.abc import Callable, Iterator, Sequence

from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.queries import cursors, ledger, quota
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.collectors.books.source import PAGE_SIZE_MAX, SERVICE, BookPage, GoogleBooksSource
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.job import JobSpec
from tsuzuki.model.verification import Comparison, FaultKind, Verified
from tsuzuki.outward.errors import OutOfQuota, RateLimitedUntil
from tsuzuki.outward.http import HttpClient
from tsuzuki.wiring.collector import VerifyContext


def verify(context: VerifyContext) -> Iterator[Verified]:
    """The ledger as one subject, then each job with a cursor."""
    stored = _verified_ledger(context)
    if stored.compared or stored.faults:
        yield stored
    wanted = [one for job in context.jobs if (one := _Wanted.of(context, job)) is not None]
    if not (wanted and context.calls_max):
        return
    section = context.section(BooksSection)
    key, clock = section.required_key(), context.database.clock
    with HttpClient(
        service=SERVICE, base_url=section.base_url, clock=clock, secrets=[key]
    ) as client:
        asking = _Asking(context, section, GoogleBooksSource(client, api_key=key, clock=clock))
        for place, one in enumerate(wanted):
            share = asking.left // (len(wanted) - place)
            yield asking.verified(one, calls_max=share)


class _Wanted:
    """The list of a job up to its cursor, cut into pages."""

    def __init__(self, job: JobSpec, options: BooksOptions, start_index: int) -> None:
        self.job_name = job.name
        self.search = options.search
        self.start_index = start_index
        self.pages = range(0, start_index, PAGE_SIZE_MAX)

    @classmethod
    def of(cls, context: VerifyContext, job: JobSpec) -> "_Wanted | None":
        """None if nothing was collected, or if the options were changed and the cursor counts in another list."""
        options = BooksOptions.model_validate(job.options)
        query_set = compute_query_set_hash(options.queries)
        with context.database.read() as connection:
            cursor = cursors.get_collect_cursor(connection, job.name, query_set)
            known = cursors.get_list_options(connection, job.name, query_set)
        if cursor is None or cursor.start_index == 0 or known != options.search.list_options:
            return None
        return cls(job, options, cursor.start_index)

    def chosen(self, count: int, *, day: int) -> list[int]:
        """The indexes at which `count` pages begin; on the next day, the pages that follow."""
        total = len(self.pages)
        return [self.pages[(day * count + n) % total] for n in range(min(count, total))]


class _Asking:
    """Asks for pages while there are calls left."""

    def __init__(
        self, context: VerifyContext, section: BooksSection, source: GoogleBooksSource
    ) -> None:
        self._context = context
        self._database = context.database
        self._section = section
        self._source = source
        self.left = context.calls_max

    def verified(self, wanted: _Wanted, *, calls_max: int) -> Verified:
        comparison = Comparison(wanted.job_name)
        day = self._database.clock.now().toordinal()
        asked = 0
        try:
            for start_index in wanted.chosen(calls_max, day=day):
                if (page := self._page(wanted, start_index)) is None:
                    return comparison.result(note=_note(asked, wanted, "today's quota is used up"))
                asked += 1
                self._compare(wanted, start_index, page, comparison)
        except RateLimitedUntil as limit:
            return comparison.result(note=_note(asked, wanted, limit.message))
        except TsuzukiError as error:
            return comparison.result(problem=error.message)
        return comparison.result(
            note=_note(asked, wanted) if asked < len(wanted.pages) else None,
        )

    def _page(self, wanted: _Wanted, start_index: int) -> BookPage | None:
        """A page of a list, for one counted call; None if there is no call left."""
        now = self._database.clock.now()
        day = self._section.allowance.day_of(now)
        with self._database.write() as connection:
            if not quota.reserve(connection, day.name, limit=self._section.daily_limit):
                return None
        self.left -= 1
        refused = self._section.allowance.refused_day(now)
        try:
            return self._source.page(
                wanted.search,
                start_index=start_index,
                max_results=min(PAGE_SIZE_MAX, wanted.start_index - start_index),
                day_ends_at=refused.ends_at,
            )
        except OutOfQuota:
            with self._database.write() as connection:
                quota.mark_refused(connection, refused.name, now=now)
            raise

    def _compare(
        self, wanted: _Wanted, start_index: int, page: BookPage, comparison: Comparison
    ) -> None:
        volumes = [book.volume_id for _, book in page.books]
        with self._database.read() as connection:
            found = ledger.found_among(connection, wanted.job_name, volumes)
        for offset, book in page.books:
            if book.volume_id not in found:
                name = f"volume {book.volume_id} ({book.title}), number {start_index + offset + 1}"
                comparison.add(FaultKind.MISSING, f"{name} of the list was not collected")
        comparison.compared += len(page.books)
        self._context.advance(len(page.books))


def _note(asked: int, wanted: _Wanted, why: str | None = None) -> str:
    said = f"compared {asked} of {len(wanted.pages)} pages with {SERVICE}"
    return f"{said}: {why}" if why else said


def _verified_ledger(context: VerifyContext) -> Verified:
    """Every stored book says what it said when it was stored, and everything found or mailed is stored."""
    comparison = Comparison("ledger")
    after = ""
    while True:
        with context.database.read() as connection:
            page = ledger.page_of_books(connection, after=after)
        for book, content_hash in page:
            if book.content_hash() != content_hash:
                name = f"volume {book.volume_id} ({book.title}) differs from the collected data"
                comparison.add(FaultKind.CHANGED, name)
        comparison.compared += len(page)
        context.advance(len(page))
        if len(page) < ledger.PAGE:
            break
        after = page[-1][0].volume_id
    for find, lost in (
        (ledger.finds_without_book, "volume {1}, found by job {0}, is not stored"),
        (ledger.deliveries_without_book, "volume {1}, emailed by job {0}, is not stored"),
        (ledger.deliveries_without_mail, "the email of job {0} with volume {1} is not stored"),
    ):
        for pair in _every(context, find):
            comparison.add(FaultKind.MISSING, lost.format(*pair))
    return comparison.result()


def _every(
    context: VerifyContext, find: Callable[..., Sequence[tuple[str, str]]]
) -> Iterator[tuple[str, str]]:
    after = ("", "")
    while True:
        with context.database.read() as connection:
            page = find(connection, after=after)
        yield from page
        if len(page) < ledger.PAGE:
            return
        after = page[-1]
