"""Projects: how many commits of each are stored, which branches are followed, and syncing projects."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from tsuzuki.collectors.commits.api.commits import (
    ProjectOut,
    commits_service,
    project_out,
    sync_projects,
)
from tsuzuki.collectors.commits.service.commits import ProjectView
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import Count, PageRequest

screen = Screen()


class ProjectRow(ProjectOut):
    """`targets` is how many of its branches are followed."""

    targets: int


class ProjectsQuery(PageRequest):
    search: str | None = Field(None, max_length=200)


class ProjectsView(Model):
    projects: list[ProjectRow]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None


@screen.page(
    "/commits/projects",
    right=Right.COLLECTORS_READ,
    template="screens/commits_projects.html",
    shared=True,
)
def projects_page(context: Page, query: Annotated[ProjectsQuery, Query()]) -> ProjectsView:
    service = commits_service(context).commits
    followed = service.count_targets_by_project()
    words = (query.search or "").casefold()
    found = [view for view in service.projects() if words in view.project.path.casefold()]
    page = context.page_of_rows(
        query.model_copy(update={"count": True}),
        found,
        position=_position,
        item=lambda view: ProjectRow(
            **project_out(context, view).model_dump(), targets=followed[view.project.project_id]
        ),
    )
    return ProjectsView(
        projects=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=page.count,
    )


def _position(view: ProjectView) -> str:
    return f"{view.project.path}\n{view.project.project_id:020}"


class SyncView(Model):
    """How many projects are known now."""

    known: int


def question(context: Page) -> SyncView:
    return SyncView(known=len(commits_service(context).commits.projects()))


@screen.confirmation(
    "/commits/projects/sync",
    right=Right.COLLECTORS_OPERATE,
    template="screens/commits_projects_sync.html",
    question=question,
)
def sync(context: Page) -> Response:
    synced = sync_projects(context)
    text = message("Projects in GitLab: %(known)s, new: %(added)s.")
    return context.redirect("/commits/projects", text, known=synced.known, added=len(synced.added))
