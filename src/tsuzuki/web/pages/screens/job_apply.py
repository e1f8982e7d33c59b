"""Apply the file: what it would add, change and remove, and doing it."""

from fastapi import Response

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.answers import Model
from tsuzuki.web.api.jobs import ApplyRequest, JobChange, apply_file
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()


class ApplyView(Model):
    """`file` is null if there is none. `problem` says why it cannot be applied."""

    file: str | None
    changes: list[JobChange]
    problem: Problem | None = None


def planned(context: Page) -> ApplyView:
    file = context.application.configuration.file
    view = ApplyView(file=str(file) if file else None, changes=[])
    try:
        changes = apply_file(context, ApplyRequest(dry_run=True)).changes
    except TsuzukiError as problem:
        return view.model_copy(update={"problem": context.problem(problem)})
    return view.model_copy(update={"changes": changes})


@screen.confirmation(
    "/jobs/-/apply",
    right=Right.JOBS_WRITE,
    template="screens/job_apply.html",
    question=planned,
)
def apply(context: Page) -> Response:
    changes = apply_file(context).changes
    text = message("File applied. Changes: %(count)s.")
    return context.redirect("/jobs", text, count=len(changes))
