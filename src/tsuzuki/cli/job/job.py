"""`tsuzuki job`: list jobs, show their definitions and schedules, and apply the file."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from tsuzuki.cli.application import ask, open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.job import views as job_views
from tsuzuki.cli.job.cursor import cursor
from tsuzuki.cli.job.edit import add, disable, dry_run_option, enable, rm, update
from tsuzuki.cli.job.run import explain, run, say_if_not_applied
from tsuzuki.cli.terminal.formatting import format_list
from tsuzuki.cli.terminal.output import Column, emit, say, warn

if TYPE_CHECKING:
    from tsuzuki.services.jobs import JobView

SHOWN_TIMES = 5
CHANGES = [
    Column("name"),
    Column("change", "CHANGE"),
    Column("keys", format=format_list),
]


@click.group(cls=Group)
def job() -> None:
    """List, start, add and change jobs.

    \b
    tsuzuki job ls
    tsuzuki job add hello --every 10m -- echo hi
    """


@job.command()
@click.option(
    "--built-in", is_flag=True, help="Include built-in jobs, such as the one for bulk actions."
)
@click.pass_obj
def ls(invocation: Invocation, built_in: bool) -> None:
    """List the jobs in the file and in the database, each with its last result.

    \b
    tsuzuki job ls --built-in
    """
    found, last_ends = ask(invocation, lambda source: (source.jobs.find(), source.jobs.last_ends()))
    views = [view for view in found if built_in or not view.is_built_in]
    job_views.emit_list(
        invocation,
        views,
        last_ends=last_ends,
        empty="no jobs yet; add one with: tsuzuki job add hello --every 10m -- echo hi",
    )
    say_if_not_applied(invocation, views)


@job.command()
@click.argument("name", shell_complete=job_names())
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show a job's definition, state and upcoming runs.

    \b
    tsuzuki job show hello
    """
    with open_application(invocation) as application:
        view = application.jobs.get(name)
        next_times = application.jobs.next_times(name, SHOWN_TIMES) if view.next_at else []
    emit(invocation, {**view.as_dict(), "next_times": next_times}, columns=job_views.OBJECT)
    say_if_not_applied(invocation, [view])


job.add_command(add)
job.add_command(update)
job.add_command(enable)
job.add_command(disable)
job.add_command(rm)
job.add_command(run)
job.add_command(explain)
job.add_command(cursor)


@job.command(name="next")
@click.argument("name", shell_complete=job_names())
@click.option(
    "--count", type=click.IntRange(1, 1000), default=SHOWN_TIMES, help="Number of upcoming times."
)
@click.pass_obj
def next_(invocation: Invocation, name: str, count: int) -> None:
    """Show when a job will run next.

    Times are shown in UTC and in the schedule's own time zone.

    \b
    tsuzuki job next hello --count 10
    """
    with open_application(invocation) as application:
        view = application.jobs.get(name)
        moments = application.jobs.next_times(name, count)
    zone = _zone_of(view)
    columns = [Column("at", "UTC"), Column("local", zone)]
    emit(
        invocation,
        [_tick(moment, zone) for moment in moments],
        columns=columns[:1] if zone == "UTC" else columns,
    )
    if not view.spec.enabled:
        warn(invocation, f"'{name}' is disabled and will not run at these times")
    say_if_not_applied(invocation, [view])


@job.command()
@dry_run_option
@click.pass_obj
def apply(invocation: Invocation, dry_run: bool) -> None:
    """Apply the configuration file to the database.

    `tsuzuki up` and commands that change a job do this automatically; use it after editing the file by
    hand while nothing is running.

    \b
    tsuzuki job apply --dry-run
    """
    with open_application(invocation, dry_run=dry_run) as application:
        application.jobs.require_file()
        changes = application.jobs.apply(dry_run=dry_run)
    emit(
        invocation,
        [{"name": change.name, "change": change.kind, "keys": change.keys} for change in changes],
        columns=CHANGES,
        empty="Database and file already agree.",
    )
    if changes and dry_run:
        say(invocation, "Dry run: nothing was changed.")


def _zone_of(view: "JobView") -> str:
    """The zone of a job's schedule. A plain interval has none."""
    return getattr(view.spec.schedule, "timezone", "UTC")


def _tick(moment: datetime, zone: str) -> dict[str, Any]:
    local = moment.astimezone(ZoneInfo(zone))
    return {"at": moment, "local": f"{local:%Y-%m-%d %H:%M:%S %a}", "timezone": zone}
