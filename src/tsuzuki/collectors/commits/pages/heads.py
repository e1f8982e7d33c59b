"""Current branch heads at the sources, next to the stored ones. Every source is contacted, so the page is not live."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query

from tsuzuki.collectors.commits.api.commits import commits_service
from tsuzuki.collectors.commits.pages.commits import TargetsQuery, find_targets
from tsuzuki.collectors.commits.pages.plan import ASKED_MAX, PlannedTarget
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import Count

screen = Screen()


class HeadsView(Model):
    """The targets of one page of the list."""

    targets: list[PlannedTarget]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None


@screen.page(
    "/commits/heads", right=Right.COLLECTORS_OPERATE, template="screens/commits_heads.html"
)
def heads_page(context: Page, query: Annotated[TargetsQuery, Query()]) -> HeadsView:
    page = find_targets(context, query)
    heads = commits_service(context).commits.remote_heads(
        asked_max=ASKED_MAX, only={(one.project_id, one.branch) for one in page.items}
    )
    return HeadsView(
        targets=[PlannedTarget.model_validate(context.mask(asdict(head))) for head in heads],
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=page.count,
    )
