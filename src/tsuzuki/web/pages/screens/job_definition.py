"""A definition in the database: made, previewed and edited as it is written in the file, against a version."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError, VersionMismatch
from tsuzuki.services.jobs import definition_text, parse_mapping
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.jobs import JobName, JobOut, job_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.faults import FormFault, faults_of, status_of
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.masked_text import with_secrets
from tsuzuki.web.pages.route import Screen

screen = Screen()

TEMPLATE = "screens/job_definition.html"
LENGTH_MAX = 100_000
NEXT_SHOWN = 5
EXAMPLE = "command: [echo, hello]\nschedule: daily at 07:00\n"


class DefinitionButton(StrEnum):
    PREVIEW = "preview"
    SAVE = "save"


class DefinitionForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    definition: str = Field(max_length=LENGTH_MAX)
    button: DefinitionButton = DefinitionButton.SAVE


class NewJobForm(DefinitionForm):
    name: str = Field(max_length=200)


class EditForm(DefinitionForm):
    version: int = Field(ge=0)


class DefinitionDifference(Model):
    """A key that another person changed meanwhile: its value now, and the one that was to be stored."""

    key: str
    now: Any
    wanted: Any


class DefinitionView(Model):
    """`version` is the one that is edited; null for a new job. `preview` is the job that it would be."""

    name: str
    version: int | None
    definition: str
    preview: JobOut | None = None
    next_times: list[Moment] = Field(default_factory=list)
    faults: list[FormFault] = Field(default_factory=list)
    differences: list[DefinitionDifference] = Field(default_factory=list)


@screen.page("/jobs/-/new", right=Right.JOBS_WRITE, template=TEMPLATE)
def new_page(context: Page) -> DefinitionView:  # noqa: ARG001 - each page takes its context
    return DefinitionView(name="", version=None, definition=EXAMPLE)


@screen.form("/jobs/-/new", right=Right.JOBS_WRITE)
def create(context: Page, form: Annotated[NewJobForm, Form()]) -> Response:
    view = DefinitionView(name=form.name, version=None, definition=form.definition)
    try:
        body = parse_mapping(form.definition, name="definition")
        if form.button is DefinitionButton.PREVIEW:
            return context.render(TEMPLATE, _previewed(context, view, body))
        context.application.jobs.create(form.name, body)
    except TsuzukiError as problem:
        return _refused(context, view, problem)
    return context.redirect(_path(form.name), message("Job %(job)s created."), job=form.name)


@screen.page("/jobs/{name}/edit", right=Right.JOBS_WRITE, template=TEMPLATE)
def edit_page(context: Page, name: JobName) -> DefinitionView:
    version, body = _stored(context, name)
    return DefinitionView(
        name=name, version=version, definition=definition_text(context.mask(body))
    )


@screen.form("/jobs/{name}/edit", right=Right.JOBS_WRITE)
def edit(context: Page, name: JobName, form: Annotated[EditForm, Form()]) -> Response:
    _, stored = _stored(context, name)
    view = DefinitionView(name=name, version=form.version, definition=form.definition)
    try:
        given = parse_mapping(form.definition, name="definition")
        body = with_secrets(given, stored, context.mask(stored))
        if form.button is DefinitionButton.PREVIEW:
            return context.render(TEMPLATE, _previewed(context, view, body))
        context.application.jobs.edit(name, body, version=form.version)
    except VersionMismatch as problem:
        return _outdated(context, view, problem)
    except TsuzukiError as problem:
        return _refused(context, view, problem)
    return context.redirect(_path(name), message("Job %(job)s updated."), job=name)


def _stored(context: PageContext, name: str) -> tuple[int | None, dict[str, Any]]:
    jobs = context.application.jobs
    job = jobs.get(name).job
    return (job.version if job else None), jobs.body(name)


def _previewed(context: PageContext, view: DefinitionView, body: dict[str, Any]) -> DefinitionView:
    made = context.application.jobs.preview(view.name, body)
    times = made.spec.next_due(context.viewer.now, NEXT_SHOWN) if made.spec.enabled else []
    return view.model_copy(update={"preview": job_out(context, made), "next_times": times})


def _refused(context: PageContext, view: DefinitionView, problem: TsuzukiError) -> Response:
    """The page again with what was typed."""
    found = view.model_copy(update={"faults": faults_of(context, problem)})
    return context.render(TEMPLATE, found, status=status_of(context, problem))


def _outdated(context: PageContext, view: DefinitionView, problem: VersionMismatch) -> Response:
    """What differs, against the version of now: to save again is to decide so."""
    version, _ = _stored(context, view.name)
    differences = [
        DefinitionDifference(
            key=key, now=context.mask({key: now})[key], wanted=context.mask({key: wanted})[key]
        )
        for key, now, wanted in problem.differences
    ]
    changes = {"version": version, "differences": differences}
    return context.render(TEMPLATE, view.model_copy(update=changes), status=412)


def _path(name: str) -> str:
    return f"/jobs/{path_part(name)}"
