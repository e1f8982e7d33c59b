"""The context of an endpoint: the application acting for the request's principal, and what the response needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from tsuzuki.model.access import Principal
from tsuzuki.web.paging import (
    Count,
    Page,
    PageRequest,
    SearchedRows,
    SignedCursors,
    count_of,
    page_of,
)
from tsuzuki.wiring.application import Application

Row = TypeVar("Row")
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class RequestContext:
    """`served` is the application of the server, which acts for no principal. `request_id` is the same if a request
    with an Idempotency-Key is made again; None without one."""

    served: Application
    principal: Principal
    path: str
    request_id: str | None

    @cached_property
    def application(self) -> Application:
        """The application, acting for the principal: made when an endpoint first asks for it."""
        return self.served.acting_as(self.principal.actor)

    def mask(self, value: Any) -> Any:
        """The value without the secrets in it."""
        return self.served.mask.value(value)

    def page(
        self,
        query: PageRequest,
        *,
        find: Callable[[Any, int], Sequence[Row] | SearchedRows[Row]],
        position: Callable[[Row], int | str],
        item: Callable[[Row], Item],
        count: Callable[[], Count] | None = None,
    ) -> Page[Item]:
        """The page that `query` asks for. `find` is given the position to continue after, or None, and how
        many rows to read; a bounded search answers with `SearchedRows`. `count` is asked unless that has counted."""
        filters: Mapping[str, Any] = query.filters()
        cursors = SignedCursors(self.application.api_requests.cursor_key, self.path, filters)
        after = None if query.cursor is None else cursors.read(query.cursor)
        rows = find(after, query.limit + 1)
        found = rows if isinstance(rows, SearchedRows) else SearchedRows(rows)
        if found.count is None and query.count and count:
            found = replace(found, count=count())
        return page_of(
            found,
            limit=query.limit,
            cursors=cursors,
            position=position,
            item=item,
            filters=filters,
        )

    def page_of_rows(
        self,
        query: PageRequest,
        rows: Sequence[Row],
        *,
        position: Callable[[Row], str],
        item: Callable[[Row], Item],
    ) -> Page[Item]:
        """The page that `query` asks for of rows that are all in memory, in the order of their positions."""
        ordered = sorted(rows, key=position)

        def find(after: str | None, limit: int) -> list[Row]:
            return [row for row in ordered if after is None or position(row) > after][:limit]

        return self.page(
            query, find=find, position=position, item=item, count=lambda: count_of(len(rows))
        )


def request_context(request: Request) -> RequestContext:
    principal: Principal = request.state.principal
    return RequestContext(
        served=request.app.state.application,
        principal=principal,
        path=request.scope["path"],
        request_id=getattr(request.state, "request_id", None),
    )


async def _request_context(request: Request) -> RequestContext:
    """In the event loop: FastAPI calls a plain function in a thread."""
    return request_context(request)


Context = Annotated[RequestContext, Depends(_request_context)]
