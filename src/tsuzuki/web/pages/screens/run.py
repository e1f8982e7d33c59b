"""A run: its state and the reason for it, its progress, log, input, output and history; cancel and retry."""

from typing import Annotated

from fastapi import Query, Response

from tsuzuki.model.access import Right
from tsuzuki.model.errors import ConfigurationError, NotFound
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Trigger
from tsuzuki.web.answers import Model
from tsuzuki.web.api.explanations import (
    RunExplanation,
    RunStackOut,
    explanation_out,
    stack_of_run,
)
from tsuzuki.web.api.run_logs import LogLineOut, line_out
from tsuzuki.web.api.run_models import RunDetail, RunOut, detail_out, run_out
from tsuzuki.web.api.runs import RunId
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.run_effects import RunEffects, effects_of
from tsuzuki.web.problems import Problem

screen = Screen()

LINES_SHOWN = 500
FOUND_MAX = 500
ATTEMPTS_SHOWN = 20
CHANGES_READ = 50
"""Changes of a run among which its start is looked for: it has few."""
BY_PEOPLE = frozenset({Trigger.MANUAL, Trigger.RETRY})
LineNumber = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


class LogView(Model):
    """A part of the log. `search` is the text that the lines were searched for; `is_cut`: more lines have it."""

    lines: list[LogLineOut]
    search: str | None = None
    is_cut: bool = False
    is_end: bool = True
    problem: Problem | None = None


class RunPageView(Model):
    """`attempts` are the runs of its chain of retries, the newest first; empty if it is the only one. `started_by` is
    who started it by hand, `failure_group` the id of the group that it failed in."""

    run: RunDetail
    explanation: RunExplanation
    log: LogView
    effects: RunEffects
    attempts: list[RunOut]
    started_by: str | None
    failure_group: str | None
    can_cancel: bool
    can_retry: bool


@screen.page("/runs/{run_id:int}", right=Right.RUNS_READ, template="screens/run.html", shared=True)
def run_page(
    context: Page,
    run_id: RunId,
    line: LineNumber = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
) -> RunPageView:
    runs = context.application.runs
    view = runs.get(run_id)
    may_operate = context.principal.may(Right.RUNS_OPERATE)
    return RunPageView(
        run=detail_out(context, view),
        explanation=explanation_out(context, runs.explain(run_id)),
        log=_log(context, run_id, line, search),
        effects=effects_of(context, view.run),
        attempts=_attempts(context, view.run) if view.run.retry_of or view.retried_as else [],
        started_by=_started_by(context, view.run),
        failure_group=context.application.failures.group_of_run(run_id),
        can_cancel=may_operate and not view.run.state.is_final,
        can_retry=may_operate and view.run.state.is_final and view.retried_as is None,
    )


def _attempts(context: PageContext, run: Run) -> list[RunOut]:
    origin_id = run.origin_id or run.id
    chain = context.application.runs.find(RunFilter(origin_id=origin_id, limit=ATTEMPTS_SHOWN))
    first = [] if any(found.id == origin_id for found in chain) else [_run(context, origin_id)]
    return [run_out(context, found) for found in (*chain, *first)]


def _started_by(context: PageContext, run: Run) -> str | None:
    """Who asked for the run, or for the retry of the one before it, as recorded in the audit log."""
    if run.trigger not in BY_PEOPLE:
        return None
    changes = context.application.audit.find(
        object_type="run", object_id=str(run.retry_of or run.id), limit=CHANGES_READ
    )
    action = "run.retry" if run.retry_of else "run.start"
    return next((change.actor for change in changes if change.action == action), None)


def _log(context: PageContext, run_id: int, line: int | None, search: str | None) -> LogView:
    """The end of the log; from a line on; or the lines that have a text."""
    logs = context.application.logs
    try:
        if search:
            return _found(context, run_id, search)
        if line is None:
            shown = logs.tail(run_id, LINES_SHOWN)
        else:
            shown = logs.read(run_id, after_seq=max(line - 20, 1) - 1, limit=LINES_SHOWN)
        is_end = line is None or len(shown) < LINES_SHOWN
    except (NotFound, ConfigurationError) as problem:
        return LogView(lines=[], problem=context.problem(problem))
    return LogView(lines=[line_out(context, found) for found in shown], is_end=is_end)


def _found(context: PageContext, run_id: int, search: str) -> LogView:
    """Only what is shown can be found: a line whose match is in a secret is left out."""
    lines = context.application.logs.search(run_id, search, limit=FOUND_MAX + 1)
    shown = [line_out(context, line) for line in lines[:FOUND_MAX]]
    is_visible = [line for line in shown if search.casefold() in line.body.casefold()]
    return LogView(lines=is_visible, search=search, is_cut=len(lines) > FOUND_MAX)


class StackView(Model):
    run: RunOut
    stack: RunStackOut


@screen.page("/runs/{run_id:int}/stack", right=Right.RUNS_READ, template="screens/run_stack.html")
def stack_page(context: Page, run_id: RunId) -> StackView:
    """Where the function of a run is right now."""
    stack = stack_of_run(context, run_id)
    return StackView(run=run_out(context, _run(context, run_id)), stack=stack)


class ConfirmView(Model):
    run: RunOut


def question(context: Page, run_id: RunId) -> ConfirmView:
    return ConfirmView(run=run_out(context, _run(context, run_id)))


def _run(context: PageContext, run_id: int) -> Run:
    return context.application.runs.get(run_id).run


@screen.confirmation(
    "/runs/{run_id:int}/cancel",
    right=Right.RUNS_OPERATE,
    template="screens/run_cancel.html",
    question=question,
)
def cancel(context: Page, run_id: RunId) -> Response:
    run = context.application.runs.cancel(run_id)
    text = message("Run %(run)s canceled.")
    if not run.state.is_final:
        text = message(
            "Cancel requested: run %(run)s will be canceled when its handler's transaction ends."
        )
    return context.redirect(f"/runs/{run_id}", text, run=run_id)


@screen.confirmation(
    "/runs/{run_id:int}/retry",
    right=Right.RUNS_OPERATE,
    template="screens/run_retry.html",
    question=question,
)
def retry(context: Page, run_id: RunId) -> Response:
    new_id = context.application.runs.retry(run_id).run_id
    text = message("This run is a retry of run %(run)s.")
    return context.redirect(f"/runs/{new_id}", text, run=run_id)
