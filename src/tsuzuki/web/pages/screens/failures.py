"""Failure groups: how often, where and when each cause occurred; retry or acknowledge a group."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.bulk import BulkVerb
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.services.failures import FailureGroup
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.failures import (
    FailureGroupOut,
    GroupId,
    group_out,
    group_position,
    read_position,
)
from tsuzuki.web.api.run_models import RunOut, run_out
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.screens.runs import RunsWindow
from tsuzuki.web.pages.words import Word
from tsuzuki.web.paging import FIRST_PAGE, PageRequest
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

OPEN = Word(message("Open"), "failed", "bad")
RECOVERED = Word(message("Recovered"), "succeeded", "good")
ACKNOWLEDGED = Word(message("Acknowledged"), "succeeded", "quiet")
UNRESOLVED_MAX = 1_000
FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)


class FailuresQuery(PageRequest):
    window: RunsWindow = RunsWindow.WEEK
    acknowledged: bool = False

    def since(self, now: datetime) -> datetime | None:
        """To the second, as links to its runs name it."""
        length = self.window.length
        return None if length is None else (now - length).replace(microsecond=0)


class FailuresView(Model):
    """`recovered` are groups of which each failure was acknowledged or has a retry that succeeded."""

    open: ClassVar = OPEN
    with_retry: ClassVar = RECOVERED
    acknowledged: ClassVar = ACKNOWLEDGED

    groups: list[FailureGroupOut]
    recovered: list[str]
    since: Moment | None
    next_cursor: str | None
    filters: dict[str, Any]


@screen.page("/failures", right=Right.RUNS_READ, template="screens/failures.html", shared=True)
def failures_page(context: Page, query: Annotated[FailuresQuery, Query()]) -> FailuresView:
    failures = context.application.failures
    since = query.since(context.viewer.now)

    def find(after: str | None, limit: int) -> list[FailureGroup]:
        return failures.find(
            since=since or FIRST_DAY,
            with_acknowledged=query.acknowledged,
            limit=limit,
            after=None if after is None else read_position(after),
        )

    page = context.page(
        query, find=find, position=group_position, item=lambda group: group_out(context, group)
    )
    unresolved = failures.find(since=since or FIRST_DAY, limit=UNRESOLVED_MAX, unresolved=True)
    open_ids = {group.id for group in unresolved}
    return FailuresView(
        groups=page.items,
        recovered=[group.id for group in page.items if group.is_open and group.id not in open_ids],
        since=since,
        next_cursor=page.next_cursor,
        filters=page.filters,
    )


class FailureView(Model):
    """`runs` is a page of them, the newest first."""

    open: ClassVar = OPEN
    acknowledged: ClassVar = ACKNOWLEDGED

    group: FailureGroupOut
    jobs: list[str]
    runs: list[RunOut]
    next_cursor: str | None


@screen.page(
    "/failures/{group_id}", right=Right.RUNS_READ, template="screens/failure.html", shared=True
)
def failure_page(
    context: Page, group_id: GroupId, query: Annotated[PageRequest, Query()] = FIRST_PAGE
) -> FailureView:
    failures = context.application.failures
    found = failures.get(group_id)
    page = context.page(
        query,
        find=lambda after, limit: failures.runs(group_id, before_id=after, limit=limit),
        position=lambda run: run.id,
        item=lambda run: run_out(context, run),
    )
    return FailureView(
        group=group_out(context, found.group),
        jobs=list(found.job_names),
        runs=page.items,
        next_cursor=page.next_cursor,
    )


@screen.form("/failures/{group_id}/retry", right=Right.RUNS_OPERATE, page=failure_page)
def retry(context: Page, group_id: GroupId) -> Response:
    """Preview a bulk action on its runs, which names their number. Nothing is retried before it is confirmed."""
    context.application.failures.get(group_id)
    view = context.application.bulk.preview(BulkVerb.RETRY, RunFilter(failure_group=group_id))
    return context.redirect(f"/bulk/{view.action.id}")


class AcknowledgeView(Model):
    group: FailureGroupOut


class AcknowledgeForm(BaseModel):
    """The newest run that was shown: a later failure opens the group again."""

    model_config = ConfigDict(extra="forbid")

    through: int = Field(ge=1, le=INTEGER_MAX)


def question(context: Page, group_id: GroupId) -> AcknowledgeView:
    found = context.application.failures.get(group_id)
    return AcknowledgeView(group=group_out(context, found.group))


@screen.confirmation(
    "/failures/{group_id}/acknowledge",
    right=Right.RUNS_OPERATE,
    template="screens/failure_acknowledge.html",
    question=question,
)
def acknowledge(
    context: Page, group_id: GroupId, form: Annotated[AcknowledgeForm, Form()]
) -> Response:
    context.application.failures.acknowledge(group_id, through=form.through)
    return context.redirect("/failures", message("Failures acknowledged."))
