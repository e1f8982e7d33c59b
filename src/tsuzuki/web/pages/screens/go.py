"""Where a typed or pasted text leads: a run by its id, a job, a worker, an item, a page of the menu.

One place is gone to at once; several are listed, and suggested by the palette as a person types.
"""

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from typing import Annotated

from fastapi import Query, Response
from starlette.responses import RedirectResponse

from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.web.answers import Model
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.extension import extensions
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

FOUND_MAX = 50


class TargetKind(StrEnum):
    RUN = "run"
    JOB = "job"
    WORKER = "worker"
    PAGE = "page"
    SETTING = "setting"
    USER = "user"


KINDS: dict[str, str] = {
    TargetKind.RUN: message("Run"),
    TargetKind.JOB: message("Job"),
    TargetKind.WORKER: message("Worker"),
    TargetKind.PAGE: message("Page"),
    TargetKind.SETTING: message("Setting"),
    TargetKind.USER: message("User"),
}


class GoPlace(Model):
    """`label` is its name or id; `word` its kind in the language of the viewer; `is_exact`: the text names it."""

    kind: str
    word: str
    label: str
    href: str
    is_exact: bool


class GoView(Model):
    """What the text may mean, at most 50; `hint` if nothing was found."""

    text: str
    places: list[GoPlace]
    hint: str | None


@screen.page("/go", right=Right.RUNS_READ, template="screens/go.html")
def go(context: Page, q: Annotated[str, Query(max_length=200)] = "") -> GoView | Response:
    text = q.strip()
    places = list(islice(_places(context, text), FOUND_MAX)) if text else []
    exact = [place for place in places if place.is_exact]
    if exact and not context.viewer.link.path.endswith(".json"):
        return RedirectResponse(exact[0].href, status_code=303)
    hint = None if places else did_you_mean(text, _job_names(context)).strip() or None
    return GoView(text=text, places=sorted(places, key=lambda place: not place.is_exact), hint=hint)


def _places(context: PageContext, text: str) -> Iterator[GoPlace]:
    """An id first, then names that have the text in them."""
    gettext = translations(context.viewer.language).gettext

    def place(kind: str, label: str, href: str, *names: str) -> Iterator[GoPlace]:
        known = [name.lower() for name in (label, *names)]
        if any(text.lower() in name for name in known):
            is_exact = text.lower() in known
            word = gettext(KINDS.get(kind, kind))
            yield GoPlace(kind=kind, word=word, label=label, href=href, is_exact=is_exact)

    number = _number(text)
    if number is not None:
        for kind, href in _numbered(context, number):
            yield from place(kind, str(number), href, text)
    for group in context.viewer.menu:
        for entry in group.entries:
            yield from place(
                TargetKind.PAGE, gettext(entry.label), entry.path, entry.path.strip("/")
            )
    for name in _job_names(context):
        yield from place(TargetKind.JOB, name, context.viewer.job_path(name))
    for kind, name, href in _named(context):
        yield from place(kind, name, href)


def _number(text: str) -> int | None:
    digits = text.lower().removeprefix("run").strip().removeprefix("#")
    if digits.isdecimal() and digits.isascii() and len(digits) < 20:
        found = int(digits)
        return found if 0 < found <= INTEGER_MAX else None
    return None


def _numbered(context: PageContext, number: int) -> Iterator[tuple[str, str]]:
    """The run with this number, and the collectors' objects that are numbered too."""
    with suppress(TsuzukiError):
        context.application.runs.get(number)
        yield TargetKind.RUN, f"/runs/{number}"
    for pages in extensions():
        find = pages.load_numbered()
        if find and all(_has_page(context, entry.path) for entry in pages.menu):
            with suppress(TsuzukiError):  # not there; or its collector cannot be used
                yield from find(context, number)


def _named(context: PageContext) -> Iterator[tuple[TargetKind, str, str]]:
    application = context.application
    if _has_page(context, "/workers"):
        for view in application.workers.workers():
            yield TargetKind.WORKER, view.worker.id, f"/workers#worker-{path_part(view.worker.id)}"
    if _has_page(context, "/settings"):
        for setting in application.settings.find():
            yield TargetKind.SETTING, setting.setting.key, f"/settings/{setting.setting.key}"
    if _has_page(context, "/users"):
        for user in application.users.find(by=context.principal):
            yield TargetKind.USER, user.name, f"/users/{path_part(user.name)}"


def _has_page(context: PageContext, path: str) -> bool:
    """Whether there is such a page of the menu, and the viewer may see it."""
    return any(entry.path == path for group in context.viewer.menu for entry in group.entries)


def _job_names(context: PageContext) -> list[str]:
    if not context.principal.may(Right.JOBS_READ):
        return []
    return context.application.jobs.names()
