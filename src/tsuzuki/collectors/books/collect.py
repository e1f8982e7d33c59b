"""The handler of a books job: collect, then email new books. If collecting fails, books stored so far are emailed
anyway. A run that fails midway still has a result that says what was done.
"""

from typing import Any

from tsuzuki.collectors.books.mail import Mailed, Mailing, MailUnsettled
from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.queries import books
from tsuzuki.collectors.books.search import Collected, SearchCollection, Skipped
from tsuzuki.collectors.books.source import SERVICE, GoogleBooksSource
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.cursor import StopReason
from tsuzuki.model.errors import UsageError
from tsuzuki.outward.http import HttpClient
from tsuzuki.outward.smtp import smtp_server_of
from tsuzuki.wiring.collector import CollectorContext


def collect(collector_context: CollectorContext, run: RunContext) -> dict[str, Any]:
    """Do what the run asks for: `collect` and `mail` are true unless its arguments say otherwise. With `dry_run` it
    collects, and neither mails nor asks for a follow-up run."""
    options = BooksOptions.model_validate(run.options)
    section = collector_context.section(BooksSection)
    collected = (
        _collect_search(run, collector_context, options, section)
        if _wants(run, "collect") or _is_dry_run(run)
        else None
    )
    result: dict[str, Any] = {"collect": collected and _summary(run, collector_context, collected)}
    mailed = Mailed()
    if _wants_mail(run, section, collected):
        mailed = _mail(run, collector_context, options, section)
        result["mail"] = mailed.as_dict()
    if collected and collected.stop_reason is StopReason.ERROR and collected.failure:
        collected.failure.result = result
        raise collected.failure
    if mailed.newly_unsettled:
        raise MailUnsettled(mailed.newly_unsettled, result=result)
    return result


def _collect_search(
    run: RunContext,
    collector_context: CollectorContext,
    options: BooksOptions,
    section: BooksSection,
) -> Collected:
    key = section.required_key()
    clock = collector_context.database.clock
    with HttpClient(
        service=SERVICE, base_url=section.base_url, clock=clock, secrets=[key]
    ) as client:
        return SearchCollection(
            run=run,
            database=collector_context.database,
            options=options,
            allowance=section.allowance,
            source=GoogleBooksSource(client, api_key=key, clock=clock),
            follows_up=not _is_dry_run(run),
        ).collect()


def _summary(
    run: RunContext, collector_context: CollectorContext, collected: Collected
) -> dict[str, Any]:
    with collector_context.database.read() as connection:
        new_books = books.count_found_by_run(connection, run.job_name, run.id)
    resumes_at = collected.resumes_at
    return {
        "stop_reason": collected.stop_reason,
        "skipped": collected.skipped,
        "pages": collected.pages,
        "returned": collected.returned,
        "total_items": collected.total_items,
        "new_books": new_books,
        "start_index_before": collected.start_index_before,
        "start_index": collected.cursor.start_index,
        "is_exhausted": collected.cursor.is_exhausted,
        "resumes_at": resumes_at.isoformat() if resumes_at else None,
    }


def _mail(
    run: RunContext,
    collector_context: CollectorContext,
    options: BooksOptions,
    section: BooksSection,
) -> Mailed:
    mailing = Mailing(
        run=run,
        database=collector_context.database,
        options=options,
        server=smtp_server_of(section.mail, section="books.mail"),
    )
    return mailing.send()


def _wants_mail(run: RunContext, section: BooksSection, collected: Collected | None) -> bool:
    """Where there is no server nothing is mailed, unless a run was asked for that very purpose; and
    not beside another run of the job, which mails what it finds itself."""
    is_only_purpose = collected is None
    is_beside_another = collected is not None and collected.skipped is Skipped.BUSY
    return (
        _wants(run, "mail")
        and not _is_dry_run(run)
        and not is_beside_another
        and (is_only_purpose or section.mail.host is not None)
    )


def _is_dry_run(run: RunContext) -> bool:
    return _wants(run, "dry_run", default=False)


def _wants(run: RunContext, name: str, *, default: bool = True) -> bool:
    value = run.arguments.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(
            f"the argument {name!r} of a books job must be true or false, not {value!r}",
            code="arguments",
        )
    return value
