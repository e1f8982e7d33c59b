"""The list of books, and the list of emails with those to be resolved."""

from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.collectors.books.api import (
    BookOut,
    BookQuery,
    CursorQuery,
    MailId,
    MailOut,
    StoredBookOut,
    books_service,
    stored_out,
)
from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import COUNT_MAX, Count, count_of
from tsuzuki.web.problems import Problem

screen = Screen()


class BookListView(Model):
    """`jobs` are those that a list can be narrowed to; `problem` says why the filter found nothing."""

    books: list[StoredBookOut]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None
    jobs: list[str]
    problem: Problem | None = None


@screen.page("/books/found", right=Right.COLLECTORS_READ, template="screens/books_found.html")
def found_page(context: Page, query: Annotated[BookQuery, Query()]) -> BookListView:
    service = books_service(context)
    wanted: dict[str, Any] = {
        "job_name": query.job,
        "words": query.search,
        "undelivered": query.undelivered,
    }
    jobs = [view.job for view in service.searches()]
    try:
        page = context.page(
            query.model_copy(update={"count": True}),
            find=lambda after, limit: service.find(**wanted, after=after, limit=limit),
            position=lambda stored: stored.book.volume_id,
            item=stored_out,
            count=lambda: count_of(service.count(**wanted, at_most=COUNT_MAX + 1)),
        )
    except (NotFound, UsageError) as error:
        return BookListView(
            books=[],
            next_cursor=None,
            filters=query.filters(),
            count=None,
            jobs=jobs,
            problem=context.problem(error),
        )
    return BookListView(
        books=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=page.count,
        jobs=jobs,
    )


class MailsView(Model):
    mails: list[MailOut]
    next_cursor: str | None
    filters: dict[str, Any]


@screen.page("/books/mails", right=Right.COLLECTORS_READ, template="screens/books_mails.html")
def mails_page(context: Page, query: Annotated[CursorQuery, Query()]) -> MailsView:
    service = books_service(context)
    page = context.page(
        query,
        find=lambda after, limit: service.mails(query.job, before_id=after, limit=limit),
        position=lambda view: view.mail.id,
        item=lambda view: MailOut.model_validate(context.mask(view.as_dict())),
    )
    return MailsView(mails=page.items, next_cursor=page.next_cursor, filters=page.filters)


class MailPage(Model):
    """A mail and what was in it."""

    mail: MailOut
    books: list[BookOut]


@screen.page(
    "/books/mails/{mail_id:int}", right=Right.COLLECTORS_READ, template="screens/books_mail.html"
)
def mail_page(context: Page, mail_id: MailId) -> MailPage:
    service = books_service(context)
    view = service.mail(mail_id)
    return MailPage(
        mail=MailOut.model_validate(context.mask(view.as_dict())),
        books=[BookOut.model_validate(book._asdict()) for book in service.delivered(mail_id)],
    )


class DecideForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    decision: str = Field(pattern="^(sent|resend)$")


@screen.confirmation(
    "/books/mails/{mail_id:int}/decide",
    right=Right.COLLECTORS_OPERATE,
    template="screens/books_decide.html",
    question=mail_page,
)
def decide(context: Page, mail_id: MailId, form: Annotated[DecideForm, Form()]) -> Response:
    service = books_service(context)
    if form.decision == "sent":
        service.mark_sent(mail_id)
        text = message("Email %(id)s marked as delivered.")
    else:
        service.resend(mail_id)
        text = message("Email %(id)s will be sent again by the next run of its job.")
    return context.redirect(f"/books/mails/{mail_id}", text, id=mail_id)
