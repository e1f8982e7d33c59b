"""`tsuzuki run failures`: list failures grouped by cause, and retry or acknowledge a group."""

from datetime import datetime

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import StoredId, since_option
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.options import limit_option
from tsuzuki.cli.run.bulk import act
from tsuzuki.cli.run.views import COLUMNS, row
from tsuzuki.cli.terminal.confirmation import yes_option
from tsuzuki.cli.terminal.formatting import format_list
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.bulk import BulkVerb

GROUPS = [
    Column("id", "GROUP"),
    Column("failures", align="right"),
    Column("job_names", "JOBS", format=format_list, shrinks=True),
    Column("last_failed_at", "LAST"),
    Column("last_run_id", "RUN", align="right"),
    Column("signature", "WHAT HAPPENED", shrinks=True),
]

group_argument = click.argument("group_id", metavar="GROUP")


@click.group(cls=Group)
def failures() -> None:
    """List failures by cause; retry or acknowledge each group.

    \b
    tsuzuki run failures ls
    tsuzuki run failures retry GROUP --dry-run
    """


@failures.command()
@click.option("--acknowledged", is_flag=True, help="Include acknowledged failures.")
@since_option
@limit_option
@click.pass_obj
def ls(invocation: Invocation, acknowledged: bool, since: datetime | None, limit: int) -> None:
    """List failure groups of the last 7 days, newest failure first.

    \b
    tsuzuki run failures ls --acknowledged
    tsuzuki run failures ls --since 12h
    """
    from tsuzuki.services.failures import group_as_dict

    with open_application(invocation, needs_file=False) as application:
        found = application.failures.find(since=since, with_acknowledged=acknowledged, limit=limit)
    rows = [group_as_dict(group) for group in found]
    emit(invocation, rows, columns=GROUPS, empty="no unacknowledged failures")


@failures.command()
@group_argument
@click.pass_obj
def show(invocation: Invocation, group_id: str) -> None:
    """Show a failure group: the affected jobs and its newest runs.

    \b
    tsuzuki run failures show GROUP
    """
    with open_application(invocation) as application:
        view = application.failures.get(group_id)
        runs = application.failures.runs(group_id, limit=10)
    emit(invocation, view.as_dict())
    if invocation.output is OutputFormat.TABLE:
        emit(invocation, map(row, runs), columns=COLUMNS)


@failures.command()
@group_argument
@click.option(
    "--dry-run", is_flag=True, help="Count the matching runs and show ten of them; change nothing."
)
@click.option("--background", is_flag=True, help="Start the action and return without waiting.")
@yes_option
@click.pass_obj
def retry(
    invocation: Invocation, group_id: str, dry_run: bool, background: bool, yes: bool
) -> None:
    """Retry all runs of a failure group that were not retried yet.

    \b
    tsuzuki run failures retry GROUP --yes
    """
    with open_application(invocation) as application:
        application.failures.get(group_id)
    act(
        invocation,
        BulkVerb.RETRY,
        states=(),
        dry_run=dry_run,
        background=background,
        yes=yes,
        failure_group=group_id,
    )


@failures.command()
@group_argument
@click.option(
    "--through", type=StoredId(), metavar="RUN", help="Acknowledge only failures up to this run ID."
)
@click.pass_obj
def ack(invocation: Invocation, group_id: str, through: int | None) -> None:
    """Acknowledge a failure group. A new failure reopens it.

    \b
    tsuzuki run failures ack GROUP
    """
    from tsuzuki.services.failures import group_as_dict

    with open_application(invocation) as application:
        group = application.failures.acknowledge(group_id, through=through)
    say(invocation, f"Acknowledged failures up to run {group.acknowledged_run_id}.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, group_as_dict(group))
