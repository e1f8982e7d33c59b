"""The plan of a collection: of all targets, or of those of some projects, with what the sources have now."""

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.collectors.commits.api.commits import BranchName, ProjectReference, commits_service
from tsuzuki.collectors.commits.pages.commits import CollectionRow, collection_row
from tsuzuki.collectors.commits.service.remote_heads import PlannedOutcome
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen

screen = Screen()

ASKED_MAX = 100
"""Of so many targets the source is asked for a plan."""


class PlannedTarget(Model):
    """A target with its stored and its remote head; `problem` is why its source did not tell."""

    project_id: int
    project: str
    branch: str
    stored: str | None
    remote: str | None
    outcome: PlannedOutcome
    problem: str | None


class CollectQuery(BaseModel):
    """Which targets: all, or those of these projects, and of this branch."""

    project: list[ProjectReference] = Field([], max_length=1000)
    branch: BranchName | None = None


class CollectForm(CollectQuery):
    model_config = ConfigDict(extra="forbid")


class PlanView(Model):
    """What a collection of these targets would find. `running` is the one that is in its way."""

    targets: list[PlannedTarget]
    counts: dict[str, int]
    filters: dict[str, Any]
    running: CollectionRow | None


@screen.page(
    "/commits/collect", right=Right.COLLECTORS_OPERATE, template="screens/commits_plan.html"
)
def plan_page(context: Page, form: Annotated[CollectQuery, Query()]) -> PlanView:
    service = commits_service(context)
    only = service.commits.select_targets(form.project, branch=form.branch)
    heads = service.commits.remote_heads(
        asked_max=0 if isinstance(form, CollectForm) else ASKED_MAX, only=only
    )
    (newest, *_) = (*service.collections.summaries(limit=1), None)
    return PlanView(
        targets=[PlannedTarget.model_validate(context.mask(asdict(head))) for head in heads],
        counts=dict(Counter(head.outcome.value for head in heads)),
        filters=form.model_dump(exclude_defaults=True),
        running=collection_row(newest) if newest and newest.completed_at_utc is None else None,
    )


@screen.form("/commits/collect", right=Right.COLLECTORS_OPERATE, page=plan_page)
def collect(context: Page, form: Annotated[CollectForm, Form()]) -> Response:
    started = commits_service(context).collections.start(form.project, branch=form.branch)
    text = message("Collection started. Targets: %(count)s.")
    if started.is_takeover:
        text = message("Resuming an unfinished collection. Targets: %(count)s.")
    return context.redirect(
        f"/commits/collections/{started.collection_id}", text, count=started.total_targets
    )
