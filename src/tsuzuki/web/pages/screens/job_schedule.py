"""The schedule of a job in the file: previewed and changed on the page, which edits the file and keeps its comments."""

from enum import StrEnum
from typing import Annotated

from fastapi import Form, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.services.jobs import JobView, parse_key_value
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.jobs import JobName, JobOut, job_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen

screen = Screen()

TEMPLATE = "screens/job_schedule.html"
LENGTH_MAX = 1000
NEXT_SHOWN = 5
KEY = "schedule"


class ScheduleButton(StrEnum):
    PREVIEW = "preview"
    SAVE = "save"


class ScheduleForm(BaseModel):
    """`version` is that of the job on the page that was shown. An empty schedule removes it."""

    model_config = ConfigDict(extra="forbid")

    schedule: Annotated[str, Field(max_length=LENGTH_MAX)] = ""
    version: int = Field(ge=0)
    button: ScheduleButton = ScheduleButton.SAVE


class ScheduleView(Model):
    """`schedule` is what was typed, or as the file has it. `preview` is the job with that schedule."""

    job: JobOut
    place: str | None
    schedule: str
    preview: JobOut | None = None
    next_times: list[Moment] = Field(default_factory=list)


def schedule_question(
    context: Page, name: JobName, form: ScheduleForm | None = None
) -> ScheduleView:
    jobs = context.application.jobs
    view, place = jobs.get(name), jobs.place(name)
    return ScheduleView(
        job=job_out(context, view),
        place=str(place) if place else None,
        schedule=jobs.schedule_text(name) if form is None else form.schedule,
    )


@screen.confirmation(
    "/jobs/{name}/schedule",
    right=Right.JOBS_WRITE,
    template=TEMPLATE,
    question=schedule_question,
)
def change_schedule(
    context: Page, name: JobName, form: Annotated[ScheduleForm, Form()]
) -> Response:
    if form.button is ScheduleButton.PREVIEW:
        return context.render(TEMPLATE, _previewed(context, name, form))
    _update(context, name, form)
    text = message("Schedule of %(job)s updated in the file.")
    return context.redirect(f"/jobs/{path_part(name)}", text, job=name)


def _update(
    context: PageContext, name: str, form: ScheduleForm, *, dry_run: bool = False
) -> JobView:
    """Without a word of the file's comments being lost."""
    written = form.schedule.strip()
    changes = {KEY: parse_key_value(KEY, written)} if written else {}
    removals = () if written else (KEY,)
    version = None if dry_run else form.version
    return context.application.jobs.update(
        name, changes, removals=removals, version=version, dry_run=dry_run
    )


def _previewed(context: PageContext, name: str, form: ScheduleForm) -> ScheduleView:
    changed = _update(context, name, form, dry_run=True)
    times = changed.spec.next_due(context.viewer.now, NEXT_SHOWN) if changed.spec.enabled else []
    shown = schedule_question(context, name, form)
    return shown.model_copy(update={"preview": job_out(context, changed), "next_times": times})
