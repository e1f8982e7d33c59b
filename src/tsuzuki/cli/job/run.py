"""`tsuzuki job run` and `tsuzuki job explain`: start a job now, or learn why it does not."""

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
        say(invocation, "File and database differ. Bring them in step with: tsuzuki job apply")


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
@click.option("--arg", "pairs", multiple=True, metavar="KEY=VALUE", help="One argument.")
@click.option(
    "--args", "whole", type=JsonParameter(), default="{}", metavar="JSON", help="All of them."
)
@click.option(
    "--key",
    "idempotency_key",
    metavar="KEY",
    help="Idempotency key: repeated calls start only one run; with other arguments they are refused.",
)
@click.option(
    "--delay",
    "delay_seconds",
    type=Seconds(),
    default=0.0,
    metavar="SECONDS",
    help="Not before so many seconds have passed; or a duration such as 10m.",
)
@click.option("--priority", type=click.IntRange(-1000, 1000), help="Instead of the job's own.")
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
    help="With --watch: give up waiting (exit 124).",
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
    """Ask for a run of a job, now.

    \b
    tsuzuki job run hello --watch
    tsuzuki job run report --arg month=11 --key report-2026-11
    """
    from tsuzuki.services.runs import Request

    arguments = arguments_of(whole, pairs)
    if timeout is not None and not watching:
        raise UsageError(
            "--timeout limits the waiting, so it needs --watch",
            hint=f"A limit of its runs is set with: tsuzuki job update {name} --timeout 10m",
        )
    with open_application(invocation) as application:
        apply_file(invocation, application)
        submission = application.runs.submit(
            Request(job=name, arguments=arguments, **options), audited=True
        )
        if not application.jobs.get(name).spec.enabled:
            warn(invocation, f"'{name}' is switched off: the run waits until it is switched on")
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
    """Say why a job is not running: its newest unfinished run, or its next time.

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
