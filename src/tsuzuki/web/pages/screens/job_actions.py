"""What is done to a job: run it now with parameters, switch it on or off, delete it. Each is confirmed on a page."""

import secrets
from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.job import PRIORITY_MAX, PRIORITY_MIN
from tsuzuki.services.jobs import parse_mapping
from tsuzuki.services.runs import DELAY_MAX_SECONDS, Request
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import JobName, JobOut, job_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

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
    """`problem` says why it cannot be started; what was typed is kept."""

    job: JobOut
    form: RunForm
    problem: Problem | None = None


@screen.page("/jobs/{name}/run", right=Right.JOBS_OPERATE, template="screens/job_run.html")
def confirm_run(context: Page, name: JobName) -> RunJobView:
    form = RunForm(once=secrets.token_urlsafe(12))
    return RunJobView(job=job_out(context, context.application.jobs.get(name)), form=form)


@screen.form("/jobs/{name}/run", right=Right.JOBS_OPERATE)
def run_now(context: Page, name: JobName, form: Annotated[RunForm, Form()]) -> Response:
    application = context.application
    try:
        request = Request(
            job=name,
            arguments=parse_mapping(form.arguments, name="arguments"),
            priority=form.priority,
            delay_seconds=form.delay_seconds,
            idempotency_key=form.key or f"page:{form.once}",
        )
        submission = application.runs.submit(request, audited=True)
    except TsuzukiError as problem:
        told = context.problem(problem)
        if told.code == "run_key_used":  # Sent before with other arguments: sending again is meant.
            form = form.model_copy(update={"once": secrets.token_urlsafe(12)})
        view = RunJobView(job=job_out(context, application.jobs.get(name)), form=form, problem=told)
        return context.render("screens/job_run.html", view, status=told.status)
    text = message("Run %(run)s started.")
    if not submission.is_new:
        text = message("Run %(run)s was already started with this key.")
    return context.redirect(f"/runs/{submission.run_id}", text, run=submission.run_id)


class JobActionView(Model):
    """A question. `live` counts the runs that have not ended; `problem` says why it cannot be done."""

    job: JobOut
    live: int
    problem: Problem | None = None


def _action_view(
    context: PageContext, name: str, problem: TsuzukiError | None = None
) -> JobActionView:
    view = context.application.jobs.get(name)
    live = 0
    if view.job is not None:
        past = context.application.job_history.of_jobs([view.job], limit=1)[view.job.id]
        live = sum(past.live.values())
    told = context.problem(problem) if problem else None
    return JobActionView(job=job_out(context, view), live=live, problem=told)


def _refused(context: PageContext, name: str, problem: TsuzukiError, template: str) -> Response:
    view = _action_view(context, name, problem)
    return context.render(template, view, status=context.problem(problem).status)


@screen.page("/jobs/{name}/enable", right=Right.JOBS_OPERATE, template="screens/job_enable.html")
def confirm_enable(context: Page, name: JobName) -> JobActionView:
    return _action_view(context, name)


@screen.form("/jobs/{name}/enable", right=Right.JOBS_OPERATE)
def enable(context: Page, name: JobName) -> Response:
    try:
        context.application.jobs.set_enabled(name, True)
    except TsuzukiError as problem:
        return _refused(context, name, problem, "screens/job_enable.html")
    return context.redirect(_path(name), message("Job %(job)s enabled."), job=name)


@screen.page("/jobs/{name}/disable", right=Right.JOBS_OPERATE, template="screens/job_disable.html")
def confirm_disable(context: Page, name: JobName) -> JobActionView:
    return _action_view(context, name)


@screen.form("/jobs/{name}/disable", right=Right.JOBS_OPERATE)
def disable(context: Page, name: JobName) -> Response:
    try:
        context.application.jobs.set_enabled(name, False)
    except TsuzukiError as problem:
        return _refused(context, name, problem, "screens/job_disable.html")
    return context.redirect(_path(name), message("Job %(job)s disabled."), job=name)


class DeleteJobForm(BaseModel):
    """`version` is that of the page on which it was asked for."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1)


@screen.page("/jobs/{name}/delete", right=Right.JOBS_WRITE, template="screens/job_delete.html")
def confirm_delete(context: Page, name: JobName) -> JobActionView:
    return _action_view(context, name)


@screen.form("/jobs/{name}/delete", right=Right.JOBS_WRITE)
def delete(context: Page, name: JobName, form: Annotated[DeleteJobForm, Form()]) -> Response:
    try:
        context.application.jobs.discard(name, version=form.version)
    except TsuzukiError as problem:
        return _refused(context, name, problem, "screens/job_delete.html")
    return context.redirect("/jobs", message("Job %(job)s deleted."), job=name)


def _path(name: str) -> str:
    return f"/jobs/{path_part(name)}"
