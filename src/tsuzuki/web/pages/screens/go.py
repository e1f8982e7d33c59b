"""Where a typed text leads: a run by its id, a job by its name, a page of the menu; else what was found."""

from typing import Annotated

from fastapi import Query, Response
from starlette.responses import RedirectResponse

from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import translations
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

FOUND_MAX = 50


class GoView(Model):
    """Jobs whose name has the text in it, at most 50."""

    text: str
    jobs: list[str]
    hint: str | None


@screen.page("/go", right=Right.RUNS_READ, template="screens/go.html")
def go(context: Page, q: Annotated[str, Query(max_length=200)] = "") -> GoView | Response:
    text = q.strip()
    if not context.viewer.link.path.endswith(".json") and (path := _one_place(context, text)):
        return RedirectResponse(path, status_code=303)
    names = _job_names(context)
    found = [name for name in names if text.lower() in name.lower()][:FOUND_MAX] if text else []
    hint = None if found else did_you_mean(text, names).strip() or None
    return GoView(text=text, jobs=found, hint=hint)


def _one_place(context: PageContext, text: str) -> str | None:
    digits = text.removeprefix("#").removeprefix("run ").strip()
    if digits.isdecimal() and digits.isascii() and 0 < int(digits) <= INTEGER_MAX:
        try:
            return f"/runs/{context.application.runs.get(int(digits)).run.id}"
        except NotFound:
            return None
    gettext = translations(context.viewer.language).gettext
    for group in context.viewer.menu:
        for entry in group.entries:
            if text.lower() in (entry.path.strip("/"), gettext(entry.label).lower()):
                return entry.path
    return context.viewer.job_path(text) if text in _job_names(context) else None


def _job_names(context: PageContext) -> list[str]:
    if not context.principal.may(Right.JOBS_READ):
        return []
    return [view.name for view in context.application.jobs.find()]
