"""Books: a search collected page after page, across days, quotas and crashes; and mailed, once."""

from typing import TYPE_CHECKING, Any

from tsuzuki.collectors.collector import (
    CheckContext,
    Collector,
    CollectorContext,
    Handler,
    ServiceContext,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tsuzuki.collectors.books.service import Books
    from tsuzuki.config import JobKind
    from tsuzuki.engine.run_context import RunContext
    from tsuzuki.model.check import Check
    from tsuzuki.store.schema.migrate import Component


def _kind() -> "JobKind":
    from tsuzuki.collectors.books.options import BooksOptions, BooksSection
    from tsuzuki.config import JobKind
    from tsuzuki.model.job_question import JobQuestion

    text = "What to search for, such as subject:astronomy (several with commas)"
    return JobKind(
        name="books",
        options_model=BooksOptions,
        section_model=BooksSection,
        questions=(JobQuestion(key=("queries",), text=text, is_list=True),),
    )


def _component() -> "Component":
    from tsuzuki.collectors.books.tables import COMPONENT

    return COMPONENT


def _handler(context: CollectorContext) -> Handler:
    def handle(run: "RunContext") -> dict[str, Any]:
        from tsuzuki.model.errors import extra_missing

        try:
            from tsuzuki.collectors.books.collect import collect
        except ModuleNotFoundError as missing:
            if missing.name != "httpx2":
                raise
            raise extra_missing(
                "books are to be collected, but the HTTP library is not installed", extra="books"
            ) from None
        return collect(context, run)

    return handle


def _service(context: ServiceContext) -> "Books":
    from tsuzuki.collectors.books.service import Books

    return Books(context)


def _checks(context: CheckContext) -> "Iterable[Check]":
    from tsuzuki.collectors.books.checks import checks

    return checks(context)


BOOKS = Collector(
    name="books",
    summary="Collect books, look at them, and mail what is new.",
    kind=_kind,
    component=_component,
    handler=_handler,
    service=_service,
    checks=_checks,
    dry_run_arguments={"dry_run": True},
    faces={"cli": "tsuzuki.cli.books:books"},
)
