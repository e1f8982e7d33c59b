"""Apply the file: what it would add, change and remove, and doing it."""

from fastapi import Response

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import ApplyRequest, JobChange, apply_file
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()

TEMPLATE = "screens/job_apply.html"


class ApplyView(Model):
    """`file` is null if there is none. `problem` says why it cannot be applied."""

    file: str | None
    changes: list[JobChange]
    problem: Problem | None = None


@screen.page("/jobs/-/apply", right=Right.JOBS_WRITE, template=TEMPLATE)
def confirm_apply(context: Page) -> ApplyView:
    try:
        changes = apply_file(context, ApplyRequest(dry_run=True)).changes
    except TsuzukiError as problem:
        return _view(context, problem=context.problem(problem))
    return _view(context, changes)


@screen.form("/jobs/-/apply", right=Right.JOBS_WRITE)
def apply(context: Page) -> Response:
    try:
        changes = apply_file(context).changes
    except TsuzukiError as problem:
        told = context.problem(problem)
        return context.render(TEMPLATE, _view(context, problem=told), status=told.status)
    return context.redirect(
        "/jobs", message("File applied. Changes: %(count)s."), count=len(changes)
    )


def _view(
    context: PageContext,
    changes: list[JobChange] | None = None,
    *,
    problem: Problem | None = None,
) -> ApplyView:
    file = context.application.configuration.file
    return ApplyView(file=str(file) if file else None, changes=changes or [], problem=problem)
