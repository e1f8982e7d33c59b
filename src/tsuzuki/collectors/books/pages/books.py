"""Books: each search with its cursor and the reason why it stopped, the quota, the next email, and resetting a
cursor.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.collectors.books.api import BookOut, DigestOut, MailOut, QuotaOut, books_service
from tsuzuki.collectors.books.service import SearchView
from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError, UsageError
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.services.runs import Request
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.jobs import JobName
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import COUNT_MAX, Count, count_of
from tsuzuki.web.problems import Problem

screen = Screen()

RUNS_LOOKED_AT = 20
"""In so many of a job's newest runs the last collection is looked for: others may only have mailed."""
MAILS_SHOWN = 5


class LastCollection(Model):
    """The newest run that collects or has collected, and what it said. `stop_reason` is `quota`, `max_per_run`,
    `exhausted` or `error`; null while it runs, or if it was skipped for the reason in `skipped`. `total_items` is the
    length of the list as it was told last."""

    run_id: int
    state: str
    at: Moment | None
    stop_reason: str | None
    skipped: str | None
    new_books: int | None
    total_items: int | None
    resumes_at: Moment | None
    progress_processed: int
    progress_total: int | None


class SearchOut(Model):
    """A books job. `position` is how many results of its list are behind it; `found` and `undelivered` are books."""

    job: str
    is_enabled: bool
    queries: list[str]
    query_set_hash: str
    position: int
    is_exhausted: bool
    moved_at: Moment | None
    found: Count
    undelivered: Count
    last: LastCollection | None


class BooksView(Model):
    searches: list[SearchOut]
    quota: QuotaOut | None
    problem: Problem | None = None


@screen.page("/books", right=Right.COLLECTORS_READ, template="screens/books.html", shared=True)
def books_page(context: Page) -> BooksView:
    searches = [_search(context, view) for view in books_service(context).searches()]
    quota, problem = _quota(context)
    return BooksView(searches=searches, quota=quota, problem=problem)


def _quota(context: PageContext) -> tuple[QuotaOut | None, Problem | None]:
    """A mistake in its settings is told, and hides nothing else."""
    try:
        use = books_service(context).quota()
    except TsuzukiError as error:
        return None, context.problem(error)
    return QuotaOut(**asdict(use), left=use.left), None


def _search(context: PageContext, view: SearchView) -> SearchOut:
    cursor = view.cursor
    return SearchOut(
        job=view.job,
        is_enabled=view.is_enabled,
        queries=[context.mask(query) for query in view.queries],
        query_set_hash=view.query_set_hash,
        position=cursor.start_index if cursor else 0,
        is_exhausted=cursor is not None and cursor.is_exhausted,
        moved_at=cursor.updated_at if cursor else None,
        found=_count(context, view.job, undelivered=False),
        undelivered=_count(context, view.job, undelivered=True),
        last=_last(context, view.job, cursor.start_index if cursor else 0),
    )


def _count(context: PageContext, job: str, *, undelivered: bool) -> Count:
    found = books_service(context).count(
        job_name=job, words=None, undelivered=undelivered, at_most=COUNT_MAX + 1
    )
    return count_of(found)


def _last(context: PageContext, job: str, position: int) -> LastCollection | None:
    if not context.principal.may(Right.RUNS_READ):
        return None
    wanted = RunFilter(job_name=job, limit=RUNS_LOOKED_AT)
    collecting = [
        run
        for run in context.application.runs.find(wanted)
        if run.started_at is not None and run.arguments.get("collect", True) is not False
    ]
    if not collecting:
        return None
    return _last_out(collecting[0], total_items=_total_items(collecting, position))


def _told(run: Run) -> dict[str, Any]:
    result = run.result if isinstance(run.result, dict) else {}
    return result.get("collect") or {}


def _total_items(runs: Sequence[Run], position: int) -> int | None:
    """The newest length that the source told. A run behind the position was one of other queries."""
    for told in map(_told, runs):
        if told.get("total_items") and (told.get("start_index") or 0) <= position:
            return int(told["total_items"])
    return None


def _last_out(run: Run, *, total_items: int | None) -> LastCollection:
    told = _told(run)
    resumes_at = told.get("resumes_at")
    return LastCollection(
        run_id=run.id,
        state=run.state.value,
        at=run.finished_at or run.started_at or run.created_at,
        stop_reason=told.get("stop_reason") or ("error" if run.error else None),
        skipped=told.get("skipped"),
        new_books=told.get("new_books"),
        total_items=total_items,
        resumes_at=datetime.fromisoformat(resumes_at) if resumes_at else None,
        progress_processed=run.progress_processed,
        progress_total=run.progress_total,
    )


class OlderCursor(Model):
    """Where the job was in queries that it no longer has."""

    query_set_hash: str
    start_index: int
    is_exhausted: bool
    last_updated_at: Moment


class BooksJobView(Model):
    """`digest` is the mail as it would be sent now, null if there is nothing to send; `books` are those in it."""

    search: SearchOut
    older: list[OlderCursor]
    digest: DigestOut | None
    books: list[BookOut]
    mails: list[MailOut]


@screen.page(
    "/books/jobs/{name}",
    right=Right.COLLECTORS_READ,
    template="screens/books_job.html",
    shared=True,
)
def books_job_page(context: Page, name: JobName) -> BooksJobView:
    service = books_service(context)
    preview = service.preview(name)
    cursors = service.cursors(name)
    search = next((view for view in service.searches() if view.job == name), None)
    if search is None:
        raise _not_applied(name)
    return BooksJobView(
        search=_search(context, search),
        older=[
            OlderCursor(
                query_set_hash=view.cursor.key,
                start_index=view.cursor.start_index,
                is_exhausted=view.cursor.is_exhausted,
                last_updated_at=view.cursor.updated_at,
            )
            for view in cursors
            if not view.is_current
        ],
        digest=DigestOut(**asdict(preview.digest)) if preview.digest else None,
        books=[BookOut.model_validate(book) for book in preview.books],
        mails=[
            MailOut.model_validate(context.mask(view.as_dict()))
            for view in service.mails(name, limit=MAILS_SHOWN)
        ],
    )


def _not_applied(name: str) -> TsuzukiError:
    return UsageError(
        f"the job {name!r} stands in the file and is not applied yet",
        hint="Apply it with: tsuzuki job apply",
        code="job_not_applied",
    )


class StartView(Model):
    job: str
    what: str
    undelivered: Count


class StartQuery(BaseModel):
    what: str = "collect"


def start_question(context: Page, name: JobName, form: Annotated[StartQuery, Query()]) -> StartView:
    books_service(context).require_job(name)
    undelivered = _count(context, name, undelivered=True)
    what = "mail" if form.what == "mail" else "collect"
    return StartView(job=name, what=what, undelivered=undelivered)


class StartBooksForm(StartQuery):
    model_config = ConfigDict(extra="forbid")

    what: str = Field(pattern="^(collect|mail)$")


@screen.confirmation(
    "/books/jobs/{name}/start",
    right=Right.COLLECTORS_OPERATE,
    template="screens/books_start.html",
    question=start_question,
)
def start(context: Page, name: JobName, form: Annotated[StartBooksForm, Form()]) -> Response:
    books_service(context).require_job(name)
    arguments = {"collect": False} if form.what == "mail" else {}
    run_id = context.application.runs.submit(
        Request(job=name, arguments=arguments), audited=True
    ).run_id
    to = f"/runs/{run_id}" if context.principal.may(Right.RUNS_READ) else "/books"
    return context.redirect(to, message("Run %(run)s started."), run=run_id)


class ResetView(Model):
    """`typed` is what was in the field of a refused form."""

    job: str
    cursors: int
    position: int
    typed: str = ""


class ResetForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field("", max_length=200)


def reset_question(context: Page, name: JobName, form: ResetForm | None = None) -> ResetView:
    found = books_service(context).cursors(name)
    return ResetView(
        job=name,
        cursors=len(found),
        position=next((view.cursor.start_index for view in found if view.is_current), 0),
        typed=form.name if form else "",
    )


@screen.confirmation(
    "/books/jobs/{name}/reset",
    right=Right.COLLECTORS_OPERATE,
    template="screens/books_reset.html",
    question=reset_question,
)
def reset(context: Page, name: JobName, form: Annotated[ResetForm, Form()]) -> Response:
    if form.name.strip() != name:
        raise UsageError(
            "the name that was typed is not that of the job",
            hint="Nothing was reset.",
            code="name_differs",
        )
    count = books_service(context).reset_cursors(name)
    text = message("Cursors of %(job)s reset: %(count)s. The next run collects from the start.")
    return context.redirect("/books", text, count=count, job=name)
