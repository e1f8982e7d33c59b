"""API route `/api/v1/statuses`."""

from typing import Annotated

from fastapi import Query

from tsuzuki.web.answers import Model
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageRequest, count_of
from tsuzuki.web.route import ApiRouter
from tsuzuki_statuses.rights import STATUSES_READ

router = ApiRouter("statuses")


class StatusOut(Model):
    """A stored status with the run that stored it."""

    job: str
    id: str
    run_id: int
    url: str
    created_at: str
    content: str


class StatusQuery(PageRequest):
    job: str | None = None
    run_id: int | None = None


def page_of_statuses(context, query):
    service = context.application.service("statuses")
    wanted = {"job": query.job, "run_id": query.run_id}

    def find(after, limit):
        return service.find(
            **wanted, after=None if after is None else after.split("\n"), limit=limit
        )

    return context.page(
        query,
        find=find,
        position=lambda row: f"{row['job']}\n{row['id']}",
        item=lambda row: StatusOut(**row),
        count=lambda: count_of(service.count(**wanted)),
    )


@router.get("/statuses", right=STATUSES_READ)
def list_statuses(context: Context, query: Annotated[StatusQuery, Query()]) -> Page[StatusOut]:
    """List stored statuses by job and id."""
    return page_of_statuses(context, query)
