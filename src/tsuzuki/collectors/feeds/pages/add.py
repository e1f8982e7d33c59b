"""Add a feed: typed, looked at with what it would need, and added to the job where that is defined.

A job that is made here lives in the database.
"""

import json
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.collectors.feeds.api.feeds import feeds_service
from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.job import JobSource
from tsuzuki.services.jobs import JobView, parse_mapping
from tsuzuki.web.answers import Model, Moment, SentenceText
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.faults import FormFault, faults_of, status_of
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()

TEMPLATE = "screens/feed_add.html"
JOB_OF_FEEDS = "feeds"
EVERY = "15m"


class AddFeedButton(StrEnum):
    PREVIEW = "preview"
    ADD = "add"


class AddFeedQuery(BaseModel):
    job: str = Field("", max_length=100)


class AddFeedForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    job: str = Field(max_length=100)
    every: str = Field(EVERY, max_length=100)
    name: str = Field(max_length=100)
    url: str = Field(max_length=2000)
    settings: str = Field("", max_length=20_000)
    button: AddFeedButton = AddFeedButton.PREVIEW


class FoundEntryOut(Model):
    title: str
    url: str
    published_at: Moment | None


class FoundFeedOut(Model):
    """What the feed lists now. `problem`: why it could not be read."""

    title: str | None
    count: int
    entries: list[FoundEntryOut]
    problem: Problem | None


class PlannedFeed(Model):
    """What adding would do. `found` is what the feed lists now; null if that was not looked at. `place` is where the
    job stands in the file; null if it is in the database. `set` are the keys of the feed as JSON, by name; `body` is
    what the API takes for the same."""

    is_new_job: bool
    place: str | None
    missing: list[SentenceText]
    notes: list[SentenceText]
    found: FoundFeedOut | None
    set: dict[str, str]
    body: str


class AddFeedView(Model):
    """A form with what was typed, the jobs that follow feeds, what adding would do, and what is wrong."""

    job: str
    every: str = EVERY
    name: str = ""
    url: str = ""
    settings: str = ""
    jobs: list[str]
    plan: PlannedFeed | None = None
    faults: list[FormFault] = Field(default_factory=list)


@screen.page("/feeds/add", right=Right.JOBS_WRITE, template=TEMPLATE)
def add_page(context: Page, query: Annotated[AddFeedQuery, Query()]) -> AddFeedView:
    names = _job_names(context)
    return AddFeedView(job=query.job or (names[0] if names else JOB_OF_FEEDS), jobs=names)


@screen.form("/feeds/add", right=Right.JOBS_WRITE)
def add(context: Page, form: Annotated[AddFeedForm, Form()]) -> Response:
    is_preview = form.button is AddFeedButton.PREVIEW
    view = AddFeedView(**form.model_dump(exclude={"button"}), jobs=_job_names(context))
    try:
        settings = {**parse_mapping(form.settings, name="settings"), "url": form.url.strip()}
        job = feeds_service(context).definitions.add(
            form.job.strip(),
            form.name.strip(),
            settings,
            schedule=_schedule(form),
            new_job_source=JobSource.DATABASE,
            dry_run=is_preview,
        )
        if is_preview:
            plan = _plan(context, form, job, settings)
            return context.render(TEMPLATE, view.model_copy(update={"plan": plan}))
    except TsuzukiError as problem:
        refused = view.model_copy(update={"faults": faults_of(context, problem)})
        return context.render(TEMPLATE, refused, status=status_of(context, problem))
    path = f"/feeds/jobs/{path_part(job.name)}/feeds/{path_part(form.name.strip())}"
    return context.redirect(path, message("Feed %(feed)s added."), feed=form.name.strip())


def _job_names(context: PageContext) -> list[str]:
    return [view.name for view in feeds_service(context).definitions.jobs()]


def _schedule(form: AddFeedForm) -> dict[str, Any]:
    return {"schedule": {"every": form.every.strip()}}


def _plan(
    context: PageContext, form: AddFeedForm, job: JobView, settings: dict[str, Any]
) -> PlannedFeed:
    name = form.name.strip()
    is_new_job = job.job is None and form.job.strip() not in _job_names(context)
    place = context.application.jobs.place(job.name)
    setup = feeds_service(context).definitions.setup(job, name)
    others = {key: value for key, value in settings.items() if key != "url"}
    body: dict[str, Any] = {"name": name, "url": settings["url"], "settings": others}
    if is_new_job:
        feeds = {name: settings}
        body = {
            "name": job.name,
            "definition": {"type": "feeds", **_schedule(form), "feeds": feeds},
        }
    return PlannedFeed(
        is_new_job=is_new_job,
        place=str(place) if place else None,
        missing=setup.missing,
        notes=setup.notes,
        found=_found(context, job, name),
        set={key: json.dumps(value, ensure_ascii=False) for key, value in others.items()},
        body=_one_word(body),
    )


def _found(context: PageContext, job: JobView, name: str) -> FoundFeedOut | None:
    look = feeds_service(context).definitions.look(job, name)
    if look is None:
        return None
    return FoundFeedOut(
        title=look.title,
        count=look.count,
        entries=[FoundEntryOut(**context.mask(vars(entry))) for entry in look.entries],
        problem=context.problem(look.problem) if look.problem else None,
    )


def _one_word(body: dict[str, Any]) -> str:
    """JSON that stands between single quotes of a shell as it is."""
    return json.dumps(body, ensure_ascii=False).replace("'", "\\u0027")
