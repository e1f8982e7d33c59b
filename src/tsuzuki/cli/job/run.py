"""`tsuzuki job run` and `tsuzuki job explain`: start a job, or explain why it is not running."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import apply_file, open_application
from tsuzuki.cli.arguments import JsonParameter, Seconds, arguments_of
from tsuzuki.cli.commands import Command
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.run.watch import (
    exit_with_result,
    reason_columns,
    say_if_not_served,
    telling_that_it_goes_on,
    watch_run,
)
from tsuzuki.cli.terminal.output import Column, emit, say, warn, write
from tsuzuki.model.errors import UsageError

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.jobs import JobView
    from tsuzuki.services.runs import Submission

ENDED = [Column("run_id"), Column("state"), Column("result")]


def say_if_not_applied(invocation: Invocation, views: "Iterable[JobView]") -> None:
    if any(view.sync_state != "applied" for view in views):
        say(
            invocation,
            "The file and the database differ. Update the database with: tsuzuki job apply",
        )


def _tell(invocation: Invocation, submission: "Submission") -> None:
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, {"run_id": submission.run_id, "is_new": submission.is_new})
        return
    run_id, is_new = submission
    started = (
        f"Started run {run_id}." if is_new else f"Run {run_id} was started with this key before."
    )
    write(f"{started} Follow it with: tsuzuki run watch {run_id}")


@click.command(cls=Command)
@click.argument("name", shell_complete=job_names())
@click.option(
    "--arg",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Argument of the run. Can be repeated.",
)
@click.option(
    "--args",
    "whole",
    type=JsonParameter(),
    default="{}",
    metavar="JSON",
    help="All arguments as a JSON object.",
)
@click.option(
    "--key",
    "idempotency_key",
    metavar="KEY",
    help="Idempotency key: repeated calls start only one run. Different arguments are refused.",
)
@click.option(
    "--delay",
    "delay_seconds",
    type=Seconds(),
    default=0.0,
    metavar="SECONDS",
    help="Seconds to wait before the run starts, or a duration such as 10m.",
)
@click.option(
    "--priority",
    type=click.IntRange(-1000, 1000),
    help="Priority of the run, instead of the job's.",
)
@click.option(
    "--watch",
    "watching",
    is_flag=True,
    help="Watch the run and its retries; the exit code is the result.",
)
@click.option(
    "--timeout",
    type=Seconds(),
    metavar="SECONDS",
    help="With --watch: stop watching after this time (exit code 124).",
)
@click.pass_obj
def run(
    invocation: Invocation,
    /,
    name: str,
    pairs: tuple[str, ...],
    whole: Any,
    watching: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Start a run of a job.

    \b
    tsuzuki job run hello --watch
    tsuzuki job run report --arg month=11 --key report-2026-11
    """
    from tsuzuki.services.runs import Request

    arguments = arguments_of(whole, pairs)
    if timeout is not None and not watching:
        raise UsageError(
            "--timeout limits the watching, so it requires --watch",
            hint=f"To limit the job's runs, use: tsuzuki job update {name} --timeout 10m",
        )
    with open_application(invocation) as application:
        apply_file(invocation, application)
        submission = application.runs.submit(
            Request(job=name, arguments=arguments, **options), audited=True
        )
        if not application.jobs.get(name).spec.enabled:
            warn(invocation, f"'{name}' is disabled: the run waits until the job is enabled")
        if not watching:
            _tell(invocation, submission)
            say_if_not_served(invocation, application, submission.run_id)
            return
        run_id = submission.run_id
        with telling_that_it_goes_on(invocation, run_id):
            ended = watch_run(
                invocation,
                application,
                run_id,
                timeout=timeout,
                with_log=True,
                follows_retries=True,
            )
        emit(invocation, _ended_row(ended), columns=ENDED)
        exit_with_result(ended)


def _ended_row(ended: "Run") -> dict[str, Any]:
    return {
        "run_id": ended.id,
        "state": ended.state,
        "result": ended.result,
        "reason": ended.reason,
        "error": ended.error,
    }


@click.command(cls=Command)
@click.argument("name", shell_complete=job_names())
@click.pass_obj
def explain(invocation: Invocation, name: str) -> None:
    """Explain why a job is not running: show its unfinished run or its next scheduled time.

    \b
    tsuzuki job explain hello
    """
    with open_application(invocation) as application:
        view = application.jobs.get(name)
        waiting = application.runs.newest_live(name) if view.job else None
        explanation = application.runs.explain(waiting.id) if waiting else None
    say_if_not_applied(invocation, [view])
    if explanation is None:
        emit(invocation, {"job": name, "run": None, "why": view.why_idle()})
    elif invocation.output is OutputFormat.TABLE:
        say(invocation, f"Run {explanation.run_id} of {name} is {explanation.state}.")
        emit(invocation, explanation.reasons, columns=reason_columns(explanation.reasons))
    else:
        emit(invocation, explanation.as_dict())
