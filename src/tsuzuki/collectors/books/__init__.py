"""Books: a search collected page after page, across days, quotas and crashes; and mailed, once."""

from typing import Any

from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.tables import COMPONENT
from tsuzuki.collectors.collector import Collector, CollectorContext, Handler
from tsuzuki.config import JobKind
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError


def _handler(collector_context: CollectorContext) -> Handler:
    def handle(run: RunContext) -> dict[str, Any]:
        try:
            from tsuzuki.collectors.books.collect import collect  # noqa: PLC0415 - most never collect
        except ModuleNotFoundError as missing:
            if missing.name != "httpx2":
                raise
            raise ConfigurationError(
                "books are to be collected, but the HTTP library is not installed",
                hint="Install it with: pip install 'tsuzuki[books]'",
                code="extra_missing",
            ) from None
        return collect(collector_context, run)

    return handle


BOOKS = Collector(
    kind=JobKind(name="books", options_model=BooksOptions, section_model=BooksSection),
    component=COMPONENT,
    handler=_handler,
)
