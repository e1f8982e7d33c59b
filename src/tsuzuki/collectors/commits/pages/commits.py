"""Commits: the branches that are followed, and how far each is collected."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.collectors.commits.api.commits import (
    BranchName,
    CollectionOut,
    ProjectReference,
    TargetOut,
    commits_service,
    target_out,
)
from tsuzuki.collectors.commits.pages.chart import team_names
from tsuzuki.collectors.commits.service.collections import Summary
from tsuzuki.collectors.commits.service.commits import TargetView
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import Count, PageRequest, count_of
from tsuzuki.web.paging import Page as ListPage

screen = Screen()

PROJECTS_OFFERED = 200


class TargetRow(TargetOut):
    last_commit_at: Moment | None
    collected_at: Moment | None


class CollectionRow(CollectionOut):
    started_at: Moment | None
    completed_at: Moment | None


class TargetsQuery(PageRequest):
    search: str | None = Field(None, max_length=200)


class CommitsView(Model):
    """`running` is the collection that is under way, `last` the newest one that has ended."""

    targets: list[TargetRow]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None
    running: CollectionRow | None
    last: CollectionRow | None
    teams: list[str]


def find_targets(context: PageContext, query: TargetsQuery) -> ListPage[TargetRow]:
    service = commits_service(context)
    return context.page(
        query.model_copy(update={"count": True}),
        find=lambda after, limit: service.commits.targets(
            words=query.search, after=_target_key(after), limit=limit
        ),
        position=lambda view: f"{view.project_id} {view.branch}",
        item=lambda view: target_row(context, view),
        count=lambda: count_of(service.commits.count_targets(query.search)),
    )


@screen.page("/commits", right=Right.COLLECTORS_READ, template="screens/commits.html", shared=True)
def commits_page(context: Page, query: Annotated[TargetsQuery, Query()]) -> CommitsView:
    page = find_targets(context, query)
    newest = [
        collection_row(one) for one in commits_service(context).collections.summaries(limit=2)
    ]
    return CommitsView(
        targets=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=page.count,
        running=next((one for one in newest if one.completed_at_utc is None), None),
        last=next((one for one in newest if one.completed_at_utc is not None), None),
        teams=team_names(context),
    )


def target_row(context: PageContext, view: TargetView) -> TargetRow:
    return TargetRow(
        **target_out(context, view).model_dump(),
        last_commit_at=moment_of(view.last_collected),
        collected_at=moment_of(view.collected_at_utc),
    )


def collection_row(summary: Summary) -> CollectionRow:
    return CollectionRow(
        **asdict(summary),
        started_at=moment_of(summary.started_at_utc),
        completed_at=moment_of(summary.completed_at_utc),
    )


def moment_of(text: str | None) -> datetime | None:
    """A stored time; None for one that is no date, as a commit may have it."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def _target_key(position: str | None) -> tuple[int, str] | None:
    if position is None:
        return None
    project_id, _, branch = position.partition(" ")
    return int(project_id), branch


class AddTargetView(Model):
    """A form with what was typed, and the projects that are known."""

    project: str = ""
    branch: str = ""
    projects: list[str]


class AddTargetQuery(BaseModel):
    project: str = Field("", max_length=500)
    branch: str = Field("", max_length=500)


class AddTargetForm(AddTargetQuery):
    model_config = ConfigDict(extra="forbid")

    project: ProjectReference


def target_to_add(context: Page, form: Annotated[AddTargetQuery, Query()]) -> AddTargetView:
    found = commits_service(context).commits.projects()[:PROJECTS_OFFERED]
    return AddTargetView(
        project=form.project,
        branch=form.branch,
        projects=[context.mask(view.project.path) for view in found],
    )


@screen.confirmation(
    "/commits/targets/add",
    right=Right.COLLECTORS_OPERATE,
    template="screens/commits_add.html",
    question=target_to_add,
)
def add(context: Page, form: Annotated[AddTargetForm, Form()]) -> Response:
    branch = form.branch.strip() or None
    view = commits_service(context).commits.add_target(form.project.strip(), branch, base=None)
    text = message("Now following %(project)s %(branch)s.")
    return context.redirect(
        "/commits", text, project=context.mask(view.project), branch=view.branch
    )


class RemoveView(Model):
    project: str
    branch: str


class RemoveQuery(BaseModel):
    project: ProjectReference
    branch: BranchName


class RemoveForm(RemoveQuery):
    model_config = ConfigDict(extra="forbid")


def target_to_remove(context: Page, form: Annotated[RemoveQuery, Query()]) -> RemoveView:
    del context
    return RemoveView(project=form.project, branch=form.branch)


@screen.confirmation(
    "/commits/targets/remove",
    right=Right.COLLECTORS_OPERATE,
    template="screens/commits_remove.html",
    question=target_to_remove,
)
def remove(context: Page, form: Annotated[RemoveForm, Form()]) -> Response:
    commits_service(context).commits.remove_target(form.project, form.branch)
    text = message("No longer following %(branch)s. Its commits are kept.")
    return context.redirect("/commits", text, branch=form.branch)
