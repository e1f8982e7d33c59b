"""Use cases of books: search, cursors, quota, and emails including their resolution."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.digest import Digest, compose
from tsuzuki.collectors.books.mail import select_books
from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.queries import books, cursors, outbox
from tsuzuki.collectors.books.queries.books import BookFilter, StoredBook
from tsuzuki.collectors.books.queries.outbox import Mail
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.collectors.books.quota import QuotaUse, use_of_today
from tsuzuki.model.cursor import Cursor
from tsuzuki.model.errors import Conflict, NotFound, UsageError
from tsuzuki.model.job import Job, JobSpec
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store import audit, jobs
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext

__all__ = [
    "Book",
    "Books",
    "CursorView",
    "Mail",
    "MailPreview",
    "MailReset",
    "MailView",
    "OutboxState",
    "SearchView",
    "StoredBook",
]

HANDLER = "books"
ALLOWANCE_KEYS = ("daily_limit", "quota_zone")
"""The keys of the section that the quota needs."""


@dataclass(frozen=True, kw_only=True)
class CursorView:
    """A cursor; `is_current` if it belongs to the queries the job has now."""

    cursor: Cursor
    is_current: bool

    def as_dict(self) -> dict[str, Any]:
        cursor = self.cursor
        return {
            "job": cursor.job_name,
            "query_set_hash": cursor.key,
            "start_index": cursor.start_index,
            "is_exhausted": cursor.is_exhausted,
            "last_updated_at": cursor.updated_at,
            "is_current": self.is_current,
        }


@dataclass(frozen=True, kw_only=True)
class SearchView:
    """A books job that is applied: what it searches for and where it continues; no cursor before its first page."""

    job: str
    is_enabled: bool
    queries: tuple[str, ...]
    query_set_hash: str
    cursor: Cursor | None


@dataclass(frozen=True, kw_only=True)
class MailView:
    """A mail, and how many books are in it."""

    mail: Mail
    books: int

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self.mail), "books": self.books}


@dataclass(frozen=True, kw_only=True)
class MailReset:
    """What a reset of a job's mails covers: `books` that `mails` of them held are mailed again."""

    job: str
    mails: int
    books: int
    kept: tuple[Mail, ...]
    """Mails that were not sent, or not surely. They keep their books: each is sent, or decided about, by itself."""

    def as_dict(self) -> dict[str, Any]:
        kept = [{"id": mail.id, "state": mail.state} for mail in self.kept]
        return {"job": self.job, "mails": self.mails, "books": self.books, "kept": kept}


@dataclass(frozen=True, kw_only=True)
class MailPreview:
    """The mail that would be sent now. `digest` is None if there is nothing to send."""

    job: str
    digest: Digest | None
    books: list[dict[str, Any]]


class Books:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database

    def require_job(self, job_name: str) -> JobSpec:
        """A books job of the file or the database. Raises `NotFound` for any other."""
        spec = self._context.jobs.get(job_name).spec
        if spec.handler != HANDLER:
            raise NotFound(
                f"{job_name!r} is not a books job: its type is {spec.handler}",
                hint=f"Run it with: tsuzuki job run {job_name}",
                code="not_a_books_job",
            )
        return spec

    # --- cursors --------------------------------------------------------------------------------

    def cursors(self, job_name: str | None = None) -> list[CursorView]:
        """Every cursor, or those of one job."""
        with self._database.read() as connection:
            found = cursors.list_collect_cursors(connection, job_name)
            if job_name is not None and not found:
                _books_job(connection, job_name)
            current = {
                (job.spec.name, compute_query_set_hash(_options(job).queries))
                for job in jobs.find(connection)
                if job.spec.handler == HANDLER
            }
        return [
            CursorView(cursor=cursor, is_current=(cursor.job_name, cursor.key) in current)
            for cursor in found
        ]

    def searches(self) -> list[SearchView]:
        """What each books job searches for, by name."""
        with self._database.read() as connection:
            known = {(c.job_name, c.key): c for c in cursors.list_collect_cursors(connection)}
            found = [job for job in jobs.find(connection) if job.spec.handler == HANDLER]
        return [_search_view(job, known) for job in found]

    def reset_cursors(self, job_name: str) -> int:
        """Forget every cursor of a job, which then begins at the start; how many there were."""
        with self._database.write() as connection:
            before = cursors.list_collect_cursors(connection, job_name)
            if not before:
                _books_job(connection, job_name)
            count = cursors.reset_collect_cursors_by_job(connection, job_name)
            audit.record(
                connection,
                actor=self._context.actor,
                action="books.cursor.reset",
                object_type="job",
                object_id=job_name,
                before={c.key: [c.start_index, c.is_exhausted] for c in before},
            )
        return count

    # --- books and quota ------------------------------------------------------------------------

    def find(
        self,
        *,
        job_name: str | None = None,
        words: str | None = None,
        undelivered: bool = False,
        after: str | None = None,
        limit: int = 50,
    ) -> list[StoredBook]:
        """Books, newest first; `after` is the volume id of the last one of the page before."""
        wanted = BookFilter(job_name=job_name, words=words, undelivered=undelivered, after=after)
        with self._reading(wanted) as connection:
            return books.find(connection, wanted, limit=limit)

    def count(
        self, *, job_name: str | None, words: str | None, undelivered: bool, at_most: int
    ) -> int:
        """How many books there are, counted no further than `at_most`."""
        wanted = BookFilter(job_name=job_name, words=words, undelivered=undelivered)
        with self._reading(wanted) as connection:
            return books.count(connection, wanted, at_most=at_most)

    @contextmanager
    def _reading(self, wanted: BookFilter) -> Iterator[Connection]:
        """Reads books, unless the filter makes no sense."""
        if wanted.undelivered and wanted.job_name is None:
            raise UsageError(
                "whether a book was emailed depends on the job", hint="Name a job with --job."
            )
        with self._database.read() as connection:
            if wanted.job_name is not None:
                _books_job(connection, wanted.job_name)
            yield connection

    def quota(self) -> QuotaUse:
        """What is left of today's calls."""
        # Only what counts here: a variable that is missing elsewhere, such as the key's, does no harm.
        allowance = self._context.section(BooksSection, only=ALLOWANCE_KEYS).allowance
        with self._database.read() as connection:
            return use_of_today(connection, allowance, self._database.now(connection))

    # --- mail -----------------------------------------------------------------------------------

    def preview(self, job_name: str) -> MailPreview:
        """The next mail of a job as the file has it, applied or not. Nothing is sent and nothing is changed."""
        options = BooksOptions.model_validate(self.require_job(job_name).options)
        with self._database.read() as connection:
            left_over = outbox.oldest_intended(connection, job_name)
            chosen = (
                outbox.contents(connection, left_over.id)
                if left_over
                else select_books(connection, job_name, options)
            )
        return MailPreview(
            job=job_name,
            digest=compose(job_name, chosen) if chosen else None,
            books=[book._asdict() for book in chosen],
        )

    def mails(
        self, job_name: str | None = None, *, before_id: int | None = None, limit: int = 50
    ) -> list[MailView]:
        """Mails, newest first. `before_id` continues a page."""
        with self._database.read() as connection:
            if job_name is not None:
                _books_job(connection, job_name)
            found = outbox.find(connection, job_name=job_name, before_id=before_id, limit=limit)
            return _counted(connection, found)

    def mails_of_run(self, job_name: str, run_id: int, *, limit: int = 50) -> list[MailView]:
        """The mails that a run sent, or tried to; none for a run of another kind."""
        with self._database.read() as connection:
            found = outbox.of_run(connection, job_name, run_id, limit=limit)
            return _counted(connection, found)

    def mail(self, mail_id: int) -> MailView:
        """One mail. Raises `NotFound`."""
        with self._database.read() as connection:
            mail = _mail(connection, mail_id)
            counts = outbox.count_books(connection, [mail_id])
        return MailView(mail=mail, books=counts.get(mail_id, 0))

    def delivered(self, mail_id: int) -> list[Book]:
        """The books of a mail, in its order."""
        with self._database.read() as connection:
            return outbox.contents(connection, mail_id)

    def preview_mail_reset(self, job_name: str) -> MailReset:
        """What `reset_mails` would reset. Nothing is changed."""
        with self._database.read() as connection:
            counts = outbox.count_sent_books(connection, job_name)
            return _mail_reset(connection, job_name, counts)

    def reset_mails(self, job_name: str) -> MailReset:
        """Let a job mail again what its sent mails held, with its next runs."""
        with self._database.write() as connection:
            counts = outbox.forget_sent(connection, job_name)
            reset = _mail_reset(connection, job_name, counts)
            audit.record(
                connection,
                actor=self._context.actor,
                action="books.mail.reset",
                object_type="job",
                object_id=job_name,
                before={str(mail_id): count for mail_id, count in sorted(counts.items())},
            )
        return reset

    def mark_sent(self, mail_id: int) -> Mail:
        """A person has looked: an unsettled mail did arrive."""
        return self._decide(mail_id, (OutboxState.UNSETTLED,), OutboxState.SENT)

    def resend(self, mail_id: int) -> Mail:
        """A person wants a mail sent again, with the next run of its job."""
        return self._decide(
            mail_id, (OutboxState.UNSETTLED, OutboxState.REFUSED), OutboxState.INTENDED
        )

    def _decide(self, mail_id: int, allowed: tuple[OutboxState, ...], after: OutboxState) -> Mail:
        with self._database.write() as connection:
            mail = _mail(connection, mail_id)
            now = self._database.now(connection)
            is_open = mail.state in allowed
            if not is_open or not outbox.OUTBOX.move(
                connection, mail_id, before=mail.state, after=after, now=now
            ):
                raise Conflict(
                    f"email {mail_id} is {mail.state}, so there is nothing to resolve",
                    hint=f"Only emails in these states can be resolved: {' or '.join(allowed)}.",
                    code="mail_settled",
                )
            audit.record(
                connection,
                actor=self._context.actor,
                action="books.mail.decide",
                object_type="mail",
                object_id=str(mail_id),
                before=mail.state,
                after=after,
            )
            moved = outbox.get(connection, mail_id)
        if moved is None:
            raise AssertionError("a mail is never removed")
        return moved


def _books_job(connection: Connection, name: str) -> Job:
    job = jobs.get_by_name(connection, name)
    if job is not None and job.spec.handler == HANDLER:
        return job
    known = [one.spec.name for one in jobs.find(connection) if one.spec.handler == HANDLER]
    raise NotFound(
        f"there is no books job {name!r}",
        hint=did_you_mean(name, known) + "See: tsuzuki job ls",
        code="job_unknown",
    )


def _mail_reset(connection: Connection, job_name: str, counts: Mapping[int, int]) -> MailReset:
    """Raises `NotFound` for a job without mails that is no books job."""
    kept = tuple(outbox.not_sent(connection, job_name))
    if not (counts or kept):
        _books_job(connection, job_name)
    return MailReset(job=job_name, mails=len(counts), books=sum(counts.values()), kept=kept)


def _mail(connection: Connection, mail_id: int) -> Mail:
    mail = outbox.get(connection, mail_id)
    if mail is None:
        raise NotFound(
            f"there is no email {mail_id}", hint="See: tsuzuki books mail", code="mail_unknown"
        )
    return mail


def _counted(connection: Connection, found: list[Mail]) -> list[MailView]:
    counts = outbox.count_books(connection, [mail.id for mail in found]) if found else {}
    return [MailView(mail=mail, books=counts.get(mail.id, 0)) for mail in found]


def _search_view(job: Job, known: Mapping[tuple[str, str], Cursor]) -> SearchView:
    queries = tuple(_options(job).queries)
    key = compute_query_set_hash(list(queries))
    return SearchView(
        job=job.spec.name,
        is_enabled=job.spec.enabled,
        queries=queries,
        query_set_hash=key,
        cursor=known.get((job.spec.name, key)),
    )


def _options(job: Job) -> BooksOptions:
    return BooksOptions.model_validate(job.spec.options)
