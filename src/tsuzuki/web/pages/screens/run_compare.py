"""Two runs side by side: only what differs, and the first line at which their logs part."""

import re
from itertools import islice, zip_longest
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.web.answers import Model
from tsuzuki.web.api.run_logs import LogLineOut, line_out
from tsuzuki.web.api.run_models import RunOut, run_out
from tsuzuki.web.api.run_query import Id
from tsuzuki.web.api.runs import RunId
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

LINES_COMPARED_MAX = 20_000
CHOICES_SHOWN = 20
SECTIONS = ("arguments", "result")
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+")
"""What differs from run to run without a meaning: numbers, times, ids."""


class RunDifference(Model):
    """A key of arguments or result that the two do not share. `here` and `there` are null where it is missing."""

    section: str
    key: str
    here: Any
    there: Any


class FirstDifference(Model):
    """The first line, in order, that is not the same apart from numbers; null where a log has ended."""

    here: LogLineOut | None
    there: LogLineOut | None


class CompareView(Model):
    """`other` is null if none was named and the job has no good run before this one. `choices` are runs of the job to
    compare with, the newest first; `is_last_good`: the other run was not named, so it is the last good one."""

    run: RunOut
    other: RunOut | None
    choices: list[RunOut]
    is_last_good: bool
    differences: list[RunDifference]
    first_line: FirstDifference | None


@screen.page(
    "/runs/{run_id:int}/compare", right=Right.RUNS_READ, template="screens/run_compare.html"
)
def compare(
    context: Page,
    run_id: RunId,
    other_id: Annotated[int | None, Query(alias="with", ge=1, le=INTEGER_MAX)] = None,
) -> CompareView:
    return _compared(context, run_id, other_id)


def _compared(context: PageContext, run_id: int, other_id: int | None) -> CompareView:
    runs = context.application.runs
    run = runs.get(run_id).run
    other = _last_good(context, run) if other_id is None else runs.get(other_id).run
    here = run_out(context, run)
    there = None if other is None else run_out(context, other)
    return CompareView(
        run=here,
        other=there,
        choices=_choices(context, run),
        is_last_good=other_id is None,
        differences=[] if there is None else _all_differences(here, there),
        first_line=None if other is None else _first_line(context, run, other),
    )


class PairQuery(BaseModel):
    """The two runs that were selected in a list. The form of the list has more fields."""

    id: Annotated[list[Id], Field(min_length=2, max_length=2)]
    back: str = Field("", max_length=2000)


@screen.page("/runs/compare", right=Right.RUNS_READ, template="screens/run_compare.html")
def compare_selected(context: Page, query: Annotated[PairQuery, Query()]) -> CompareView:
    older, newer = sorted(query.id)
    return _compared(context, newer, older)


def _choices(context: PageContext, run: Run) -> list[RunOut]:
    found = _found(context, RunFilter(job_name=run.job_name, limit=CHOICES_SHOWN + 1))
    return [run_out(context, other) for other in found if other.id != run.id]


def _last_good(context: PageContext, run: Run) -> Run | None:
    succeeded = frozenset({RunState.SUCCEEDED})
    wanted = RunFilter(job_name=run.job_name, states=succeeded, before_id=run.id, limit=1)
    return next(iter(_found(context, wanted)), None)


def _found(context: PageContext, wanted: RunFilter) -> list[Run]:
    try:
        return context.application.runs.find(wanted)
    except NotFound:  # the job was removed
        return []


def _all_differences(here: RunOut, there: RunOut) -> list[RunDifference]:
    return [
        found
        for section in SECTIONS
        for found in _differences(section, getattr(here, section), getattr(there, section))
    ]


def _differences(section: str, here: Any, there: Any) -> list[RunDifference]:
    if not isinstance(here, dict) or not isinstance(there, dict):
        same = here == there
        return [] if same else [RunDifference(section=section, key="", here=here, there=there)]
    return [
        RunDifference(section=section, key=key, here=here.get(key), there=there.get(key))
        for key in sorted({*here, *there})
        if here.get(key) != there.get(key)
    ]


def _first_line(context: PageContext, run: Run, other: Run) -> FirstDifference | None:
    logs = context.application.logs
    both = zip_longest(logs.read_all(run.id), logs.read_all(other.id))
    for here, there in islice(both, LINES_COMPARED_MAX):
        if here is None or there is None or _bare(here.body) != _bare(there.body):
            return FirstDifference(
                here=None if here is None else line_out(context, here),
                there=None if there is None else line_out(context, there),
            )
    return None


def _bare(line: str) -> str:
    return _VARYING.sub("#", line)
