"""Checks of the collection of books: one search with one result, which is a call of today's quota, and the mail
server up to the sign-in."""

from collections.abc import Iterator
from datetime import UTC, datetime

from tsuzuki.collectors.books.options import BooksSection
from tsuzuki.collectors.books.queries import quota
from tsuzuki.collectors.books.query_set import BookSearch
from tsuzuki.collectors.books.source import SERVICE, GoogleBooksSource
from tsuzuki.model.check import SERVICE_STEP, Check, checked, fault_of, ok, warning
from tsuzuki.model.errors import ConfigurationError, TsuzukiError
from tsuzuki.outward.errors import RateLimitedUntil
from tsuzuki.outward.http import HttpClient
from tsuzuki.outward.smtp import smtp_server_of
from tsuzuki.wiring.collector import CheckContext

SEARCH = BookSearch(text="tsuzuki", print_type=None, lang_restrict=None, order_by=None)
KEY, MAIL = f"books: {SERVICE}", "books: mail"


def checks(context: CheckContext) -> Iterator[Check]:
    """None without a job of this kind."""
    if not context.jobs:
        return
    try:
        section = context.section(BooksSection)
        section.required_key()
    except ConfigurationError as problem:
        yield fault_of(KEY, problem)
        return
    yield _answered(context, section)
    if section.mail.host is None:
        yield warning(
            MAIL,
            "no mail server is configured, so no emails are sent",
            "Set books.mail.host if you want emails.",
        )
    else:
        yield checked(MAIL, lambda: _mail_answered(section))


def _answered(context: CheckContext, section: BooksSection) -> Check:
    if not context.has_tables:
        step = "Fix the database first: calls are counted there."
        return warning(KEY, "not checked", step)
    day = section.allowance.day_of(context.database.clock.now())
    if context.is_in_use:  # else no call was made yet, and there is no table to count this one in
        with context.database.write() as connection:
            is_left = quota.reserve(connection, day.name, limit=section.daily_limit)
        if not is_left:
            return warning(KEY, "not checked: today's quota is used up", _wait(day.ends_at))
    try:
        return ok(KEY, _asked(context, section))
    except RateLimitedUntil as limit:
        return warning(KEY, limit.message, _wait(limit.until))
    except TsuzukiError as problem:
        return fault_of(KEY, problem, SERVICE_STEP)


def _wait(until: datetime) -> str:
    return f"Wait until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z."


def _asked(context: CheckContext, section: BooksSection) -> str:
    key, clock = section.required_key(), context.database.clock
    day_ends_at = section.allowance.day_of(clock.now()).ends_at
    with HttpClient(
        service=SERVICE, base_url=section.base_url, clock=clock, secrets=[key]
    ) as client:
        source = GoogleBooksSource(client, api_key=key, clock=clock)
        source.page(SEARCH, start_index=0, max_results=1, day_ends_at=day_ends_at)
    return "the key is accepted"


def _mail_answered(section: BooksSection) -> str:
    server = smtp_server_of(section.mail, section="books.mail")
    server.sign_in()
    return f"{server.host}:{server.port} answers" + (
        ", and accepts the user" if server.user else ""
    )
