"""A run beside the last good one of its job: only what differs, and the first line at which their logs part."""

import re
from itertools import islice, zip_longest
from typing import Annotated, Any

from fastapi import Query

from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.web.answers import Model
from tsuzuki.web.api.run_logs import LogLineOut, line_out
from tsuzuki.web.api.run_models import RunOut, run_out
from tsuzuki.web.api.runs import RunId
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

LINES_COMPARED_MAX = 20_000
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
    """`other` is null if the job has no good run before this one."""

    run: RunOut
    other: RunOut | None
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
    run = context.application.runs.get(run_id).run
    other = (
        _last_good(context, run) if other_id is None else context.application.runs.get(other_id).run
    )
    here = run_out(context, run)
    if other is None:
        return CompareView(run=here, other=None, differences=[], first_line=None)
    there = run_out(context, other)
    return CompareView(
        run=here,
        other=there,
        differences=[
            found
            for section in SECTIONS
            for found in _differences(section, getattr(here, section), getattr(there, section))
        ],
        first_line=_first_line(context, run, other),
    )


def _last_good(context: PageContext, run: Run) -> Run | None:
    wanted = RunFilter(
        job_name=run.job_name,
        states=frozenset({RunState.SUCCEEDED}),
        before_id=run.id,
        limit=1,
    )
    try:
        return next(iter(context.application.runs.find(wanted)), None)
    except NotFound:  # the job was removed
        return None


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
