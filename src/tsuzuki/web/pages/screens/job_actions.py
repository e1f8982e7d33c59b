"""Actions on a job: run it with parameters, enable, disable or delete it. Each is confirmed on a page."""

import secrets
from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import Conflict
from tsuzuki.model.job import PRIORITY_MAX, PRIORITY_MIN
from tsuzuki.services.jobs import parse_mapping
from tsuzuki.services.runs import DELAY_MAX_SECONDS, Request
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import JobName, JobOut, job_out
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen

screen = Screen()

ARGUMENTS_LENGTH_MAX = 50_000


class RunForm(BaseModel):
    """`once` is of the page that was shown: sent twice, it is the same run."""

    model_config = ConfigDict(extra="forbid")

    arguments: Annotated[str, Field(max_length=ARGUMENTS_LENGTH_MAX)] = ""
    priority: Annotated[int, Field(ge=PRIORITY_MIN, le=PRIORITY_MAX)] | None = None
    delay_seconds: Annotated[float, Field(ge=0, le=DELAY_MAX_SECONDS)] = 0.0
    key: Annotated[str, Field(max_length=500)] = ""
    once: str = Field(min_length=8, max_length=100)


class RunJobView(Model):
    """`form` has what was typed."""

    job: JobOut
    form: RunForm


def run_question(context: Page, name: JobName, form: RunForm | None = None) -> RunJobView:
    form = form or RunForm(once=secrets.token_urlsafe(12))
    return RunJobView(job=job_out(context, context.application.jobs.get(name)), form=form)


@screen.confirmation(
    "/jobs/{name}/run",
    right=Right.JOBS_OPERATE,
    template="screens/job_run.html",
    question=run_question,
)
def run_now(context: Page, name: JobName, form: Annotated[RunForm, Form()]) -> Response:
    request = Request(
        job=name,
        arguments=parse_mapping(form.arguments, name="arguments"),
        priority=form.priority,
        delay_seconds=form.delay_seconds,
        idempotency_key=form.key or f"page:{form.once}",
    )
    try:
        submission = context.application.runs.submit(request, audited=True)
    except Conflict as problem:
        if problem.specific_code == "run_key_used":
            # Sent before with other arguments: sending again is meant.
            form.once = secrets.token_urlsafe(12)
        raise
    text = message("Run %(run)s started.")
    if not submission.is_new:
        text = message("Run %(run)s was already started with this key.")
    return context.redirect(f"/runs/{submission.run_id}", text, run=submission.run_id)


class JobActionView(Model):
    """A question. `live` counts the runs that have not ended."""

    job: JobOut
    live: int


def question(context: Page, name: JobName) -> JobActionView:
    view = context.application.jobs.get(name)
    live = 0
    if view.job is not None:
        past = context.application.job_history.of_jobs([view.job], limit=1)[view.job.id]
        live = sum(past.live.values())
    return JobActionView(job=job_out(context, view), live=live)


@screen.confirmation(
    "/jobs/{name}/enable",
    right=Right.JOBS_OPERATE,
    template="screens/job_enable.html",
    question=question,
)
def enable(context: Page, name: JobName) -> Response:
    context.application.jobs.set_enabled(name, True)
    return context.redirect(_path(name), message("Job %(job)s enabled."), job=name)


@screen.confirmation(
    "/jobs/{name}/disable",
    right=Right.JOBS_OPERATE,
    template="screens/job_disable.html",
    question=question,
)
def disable(context: Page, name: JobName) -> Response:
    context.application.jobs.set_enabled(name, False)
    return context.redirect(_path(name), message("Job %(job)s disabled."), job=name)


class DeleteJobForm(BaseModel):
    """`version` is that of the page on which it was asked for."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1)


@screen.confirmation(
    "/jobs/{name}/delete",
    right=Right.JOBS_WRITE,
    template="screens/job_delete.html",
    question=question,
)
def delete(context: Page, name: JobName, form: Annotated[DeleteJobForm, Form()]) -> Response:
    context.application.jobs.discard(name, version=form.version)
    return context.redirect("/jobs", message("Job %(job)s deleted."), job=name)


def _path(name: str) -> str:
    return f"/jobs/{path_part(name)}"
