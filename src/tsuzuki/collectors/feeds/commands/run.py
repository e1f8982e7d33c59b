"""`tsuzuki feeds fetch|process|budget`: work on a job's feeds now, and what may still be spent."""

from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import timeout_option
from tsuzuki.cli.commands import Command
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.job.edit import DRY_RUN, dry_run_option
from tsuzuki.cli.run.wait import run_and_wait
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.collectors.feeds.commands.result import tell_feeds_result
from tsuzuki.collectors.feeds.commands.service import feeds_service

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

PLANNED = [
    Column("position", "#", align="right"),
    Column("id", align="right"),
    Column("feed"),
    Column("status"),
    Column("next_step", "NEXT STEP"),
    Column("title"),
]
BUDGET = [
    Column("scope"),
    Column("day"),
    Column("requests", align="right"),
    Column("requests_limit", "OF", align="right"),
    Column("tokens", align="right"),
    Column("tokens_limit", "OF", align="right"),
    Column("cost", align="right"),
    Column("cost_limit", "OF", align="right"),
    Column("resets_at", "RESETS"),
    Column("parked_until", "PARKED UNTIL"),
]


@click.command(cls=Command)
@click.argument("job_name", metavar="JOB", shell_complete=job_names("feeds"))
@timeout_option
@click.pass_obj
def fetch(invocation: Invocation, job_name: str, timeout: float | None) -> None:
    """Fetch a job's feeds now and wait for the result. No model is called and nothing is posted.

    \b
    tsuzuki feeds fetch feeds
    """
    _run(invocation, job_name, {"process": False}, timeout)


@click.command(cls=Command)
@click.argument("job_name", metavar="JOB", shell_complete=job_names("feeds"))
@click.option(
    "--items",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Maximum number of items to process.",
)
@dry_run_option
@timeout_option
@click.pass_obj
def process(
    invocation: Invocation, job_name: str, items: int | None, dry_run: bool, timeout: float | None
) -> None:
    """Process a job's items now: screen, summarize and post them. Feeds are not fetched.

    With --dry-run, items are listed in the order they would be processed, each with its next step; no model
    is called and nothing is posted.

    \b
    tsuzuki feeds process feeds --items 1
    tsuzuki feeds process feeds --dry-run
    """
    if dry_run:
        with open_application(invocation) as application:
            planned = feeds_service(application).explanations.plan(job_name, limit=items)
        say(invocation, DRY_RUN)
        emit(invocation, planned, columns=PLANNED, empty="no items to process")
        return
    arguments: dict[str, Any] = {"fetch": False}
    if items is not None:
        arguments["items"] = items
    _run(invocation, job_name, arguments, timeout)


@click.command(cls=Command)
@click.pass_obj
def budget(invocation: Invocation) -> None:
    """Show spending on models, what is left, and when budgets reset.

    \b
    tsuzuki feeds budget
    """
    with open_application(invocation) as application:
        used = feeds_service(application).spending.use()
    emit(invocation, [one.as_dict() for one in used], columns=BUDGET, empty="nothing was spent yet")


def _run(
    invocation: Invocation, job_name: str, arguments: dict[str, Any], timeout: float | None
) -> None:
    with open_application(invocation) as application:
        _require_job(application, job_name)
        run_and_wait(
            invocation,
            application,
            job_name,
            arguments=arguments,
            timeout=timeout,
            tell=tell_feeds_result,
        )


def _require_job(application: "Application", job_name: str) -> None:
    feeds_service(application).definitions.require_job(job_name)
