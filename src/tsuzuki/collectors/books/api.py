"""`/books`: collected books, cursors, the remaining quota, and the next email."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic import BeforeValidator, Field, JsonValue
from starlette.concurrency import run_in_threadpool

from tsuzuki.collectors.books.service import Books, CursorView, Mail, StoredBook
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.api.run_models import RunOut
from tsuzuki.web.api.runs import StartRun, start_run
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, Page, PageRequest, count_of
from tsuzuki.web.problems import InvalidRequest, PartProblem
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.bodies import INTEGER_MAX

router = ApiRouter("books")

JobFilter = Annotated[str, Field(min_length=1, max_length=100)]
MailId = Annotated[int, Path(ge=1, le=INTEGER_MAX, examples=[3])]


class BookOut(Model):
    """One volume. What the source did not say is null."""

    volume_id: str
    title: str
    isbn13: str | None
    subtitle: str | None
    authors: list[str]
    publisher: str | None
    published_date: str | None
    description: str | None
    language: str | None
    print_type: str | None
    page_count: int | None
    info_link: str | None


class StoredBookOut(BookOut):
    first_seen_at: Moment
    last_seen_at: Moment


class BookQuery(PageRequest):
    job: JobFilter | None = Field(None, description="Include only books found by this job.")
    search: str | None = Field(
        None, max_length=200, description="Text in title, subtitle, authors or ISBN."
    )
    undelivered: bool = Field(
        False, description="With `job`: include only books not emailed by it yet."
    )


class CursorQuery(PageRequest):
    job: JobFilter | None = None


class CursorOut(Model):
    """Where a job continues; `is_current` if it belongs to the queries that the job has now."""

    job: str
    query_set_hash: str
    start_index: int
    is_exhausted: bool
    last_updated_at: Moment
    is_current: bool


def _only_true(value: Any) -> Any:
    """1 is equal to true, and no confirmation."""
    if value is not True:
        raise ValueError("it must be true")
    return value


class ResetRequest(Model):
    confirm: Annotated[Literal[True], BeforeValidator(_only_true)] = Field(
        description="Must be true: the job then starts from the beginning.", examples=[True]
    )


class ResetOut(Model):
    job: str
    cursors: int = Field(description="Number of cursors reset.")


class QuotaOut(Model):
    """Calls of today, as the source counts its days. `refused_at`: the source itself said that they are used up."""

    day: str
    calls: int
    limit: int
    left: int
    resets_at: Moment
    refused_at: Moment | None


class DigestOut(Model):
    subject: str
    text: str
    html: str


class BooksPreview(Model):
    """The mail that would be sent now; `digest` is null if there is nothing to send."""

    job: str
    digest: DigestOut | None
    books: list[BookOut]


class CollectBooksRequest(Model):
    mail: bool = Field(True, description="Send an email afterwards, if the job does so.")


class MailOut(Model):
    """A mail of a job. `unsettled`: its sender was cut off, and whether it arrived is not known."""

    id: int
    job_name: str
    message_id: str
    state: str
    created_at: Moment
    changed_at: Moment
    sent_by_run: int | None
    error: str | None
    books: int


class DecidedMail(Model):
    id: int
    job_name: str
    state: str


def books_service(context: Context) -> Books:
    service: Books = context.application.service("books")
    return service


def stored_out(stored: StoredBook) -> StoredBookOut:
    return StoredBookOut(
        **stored.book._asdict(),
        first_seen_at=stored.first_seen_at,
        last_seen_at=stored.last_seen_at,
    )


@router.get("/books", right=Right.COLLECTORS_READ, refuses=[404])
def list_books(context: Context, query: Annotated[BookQuery, Query()]) -> Page[StoredBookOut]:
    """List books, the newest first."""
    if query.undelivered and query.job is None:
        message = "whether a book was emailed depends on the job"
        raise InvalidRequest(
            [PartProblem(where="query.undelivered", message=message, hint="Give `job` too.")]
        )
    wanted: dict[str, Any] = {
        "job_name": query.job,
        "words": query.search,
        "undelivered": query.undelivered,
    }
    service = books_service(context)
    return context.page(
        query,
        find=lambda after, limit: service.find(**wanted, after=after, limit=limit),
        position=lambda stored: stored.book.volume_id,
        item=stored_out,
        count=lambda: count_of(service.count(**wanted, at_most=COUNT_MAX + 1)),
    )


@router.get("/books/cursors", right=Right.COLLECTORS_READ, refuses=[404])
def list_books_cursors(context: Context, query: Annotated[CursorQuery, Query()]) -> Page[CursorOut]:
    """List where each books job continues, by job."""
    found = books_service(context).cursors(query.job)
    return context.page_of_rows(
        query,
        found,
        position=_cursor_position,
        item=lambda view: CursorOut.model_validate(view.as_dict()),
    )


def _cursor_position(view: CursorView) -> str:
    return f"{view.cursor.job_name}\n{view.cursor.key}"


@router.post("/books/jobs/{name}/reset", right=Right.COLLECTORS_OPERATE, refuses=[404])
def reset_books_cursors(context: Context, name: JobName, body: ResetRequest) -> ResetOut:
    """Forget where a books job continues: its next run collects from the start. What was found stays."""
    del body
    return ResetOut(job=name, cursors=books_service(context).reset_cursors(name))


@router.get("/books/quota", right=Right.COLLECTORS_READ)
def books_quota(context: Context) -> QuotaOut:
    """What is left of today's calls, and when there are more."""
    use = books_service(context).quota()
    return QuotaOut(**asdict(use), left=use.left)


@router.get("/books/jobs/{name}/preview", right=Right.COLLECTORS_READ, refuses=[404])
def preview_books_mail(context: Context, name: JobName) -> BooksPreview:
    """The next mail of a books job. Nothing is sent and nothing is changed."""
    preview = books_service(context).preview(name)
    return BooksPreview(
        job=preview.job,
        digest=DigestOut(**asdict(preview.digest)) if preview.digest else None,
        books=[BookOut.model_validate(book) for book in preview.books],
    )


@router.post(
    "/books/jobs/{name}/collect", right=Right.COLLECTORS_OPERATE, refuses=[404], status_code=201
)
async def collect_books(
    request: Request,
    response: Response,
    context: Context,
    name: JobName,
    body: CollectBooksRequest | None = None,
) -> RunOut:
    """Start a run that goes on with a job's collection."""
    await run_in_threadpool(lambda: books_service(context).require_job(name))
    arguments: dict[str, JsonValue] = {"mail": False} if body and not body.mail else {}
    return await start_run(request, response, name, StartRun(arguments=arguments))


@router.post(
    "/books/jobs/{name}/mail", right=Right.COLLECTORS_OPERATE, refuses=[404], status_code=201
)
async def mail_books(
    request: Request, response: Response, context: Context, name: JobName
) -> RunOut:
    """Start a run that sends a job's next mail, and collects nothing."""
    await run_in_threadpool(lambda: books_service(context).require_job(name))
    return await start_run(request, response, name, StartRun(arguments={"collect": False}))


@router.get("/books/mails", right=Right.COLLECTORS_READ, refuses=[404])
def list_mails(context: Context, query: Annotated[CursorQuery, Query()]) -> Page[MailOut]:
    """List mails, the newest first."""
    service = books_service(context)
    return context.page(
        query,
        find=lambda after, limit: service.mails(query.job, before_id=after, limit=limit),
        position=lambda view: view.mail.id,
        item=lambda view: MailOut.model_validate(context.mask(view.as_dict())),
    )


@router.post("/books/mails/{mail_id}/mark-sent", right=Right.COLLECTORS_OPERATE, refuses=[404])
def mark_mail_sent(context: Context, mail_id: MailId) -> DecidedMail:
    """Say of an unsettled mail that it did arrive."""
    return _decided(books_service(context).mark_sent(mail_id))


@router.post("/books/mails/{mail_id}/resend", right=Right.COLLECTORS_OPERATE, refuses=[404])
def resend_mail(context: Context, mail_id: MailId) -> DecidedMail:
    """Have an unsettled or refused mail sent again, with the next run of its job."""
    return _decided(books_service(context).resend(mail_id))


def _decided(mail: Mail) -> DecidedMail:
    return DecidedMail(id=mail.id, job_name=mail.job_name, state=mail.state)
