"""The subcommands that change a job: add, update, enable, disable, rm.

Every change is validated completely before anything is written. A job in the file is changed there, and comments
are kept.
"""

from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.job import views as job_views
from tsuzuki.cli.job.options import (
    JobChanges,
    KeyPath,
    changes_of,
    dotted_key,
    job_options,
)
from tsuzuki.cli.job.questions import JobQuestions, can_ask
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.formatting import describe_changes
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.model.errors import UsageError

if TYPE_CHECKING:
    from tsuzuki.services.jobs import JobView
    from tsuzuki.wiring.application import Application

names_argument = click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", shell_complete=job_names()
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Check and show the change without writing it."
)
DRY_RUN = "Dry run: nothing was written."


@click.command(cls=Command)
@click.argument("name", required=False)
@job_options
@dry_run_option
@click.pass_obj
def add(invocation: Invocation, /, name: str | None, dry_run: bool, **said: Any) -> None:
    """Add a job to the file and the database.

    The words after -- are the command. A job without a schedule or an event runs only when started by
    hand. In a terminal you are asked for missing values; with --type, also for the keys of that job type.

    \b
    tsuzuki job add hello --every 10m -- echo "hello there"
    tsuzuki job add report --python reports.weekly:send --schedule "weekly on monday at 09:00"
    tsuzuki job add backup --command "pg_dump -f out.dump" --daily-at 02:30 --timezone Asia/Tokyo
    """
    changes = changes_of(said)
    if not can_ask():
        _require_complete(name, changes)
    with open_application(invocation, dry_run=dry_run) as application:
        if can_ask():
            name, changes = JobQuestions(invocation, application.jobs, changes).ask(name)
        view = application.jobs.add(str(name), changes.values, dry_run=dry_run)
        file = application.jobs.require_file()
    say(invocation, DRY_RUN if dry_run else f"Added '{name}' to {file}.")
    _warn_of_missing(invocation, application, view)
    _show(invocation, view)


def _require_complete(name: str | None, changes: JobChanges) -> None:
    if name is None:
        raise UsageError(
            "missing job name",
            hint="For example: tsuzuki job add backup --daily-at 02:30 -- ./backup.sh",
        )
    if not changes.say_what_to_run:
        raise UsageError(
            f"job '{name}' has nothing to run",
            hint="Put the command after -- at the end, or use --command, --python or --type.",
        )


@click.command(cls=Command)
@click.argument("name", shell_complete=job_names())
@job_options
@click.option(
    "--unset",
    type=dotted_key,
    metavar="KEY",
    multiple=True,
    help="Remove a key, so that its default applies.",
)
@dry_run_option
@click.pass_obj
def update(
    invocation: Invocation, /, name: str, unset: tuple[KeyPath, ...], dry_run: bool, **said: Any
) -> None:
    """Change a job in the file and the database.

    Options not given keep their values. A new schedule replaces the old one and keeps its time zone.

    \b
    tsuzuki job update hello --every 1h
    tsuzuki job update hello --timeout 5m --set backoff.initial=10s
    tsuzuki job update hello --unset schedule
    """
    changes = changes_of(said, unset=unset)
    if changes.are_none:
        raise UsageError(
            f"no change given for job '{name}'",
            hint="See the options with: tsuzuki job update --help",
        )
    with open_application(invocation, dry_run=dry_run) as application:
        before = application.jobs.get(name)
        view = application.jobs.update(
            name, changes.values, removals=changes.removals, dry_run=dry_run
        )
    _tell_changes(invocation, before, view, dry_run=dry_run)
    if before.spec.options != view.spec.options:
        _warn_of_missing(invocation, application, view)
    _show(invocation, view)


@click.command(cls=Command)
@names_argument
@click.pass_obj
def enable(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Enable jobs. Missed runs are not made up for.

    \b
    tsuzuki job enable hello report
    """
    _switch(invocation, names, enabled=True)


@click.command(cls=Command)
@names_argument
@click.pass_obj
def disable(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Disable jobs. Runs in progress will finish.

    \b
    tsuzuki job disable hello report
    """
    _switch(invocation, names, enabled=False)


@click.command(cls=Command)
@names_argument
@yes_option
@click.pass_obj
def rm(invocation: Invocation, names: tuple[str, ...], yes: bool) -> None:
    """Delete jobs from the file and the database. Their runs are kept.

    \b
    tsuzuki job rm hello --yes
    """
    with open_application(invocation) as application:
        views = [application.jobs.get(name) for name in dict.fromkeys(names)]
        listed = ", ".join(f"'{view.name}'" for view in views)
        noun = "job" if len(views) == 1 else f"{len(views)} jobs"
        confirm(invocation, f"delete the {noun} {listed}", yes=yes)
        for view in views:
            application.jobs.remove(view.name)
    say(invocation, f"Deleted {listed}.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, [view.as_dict() for view in views], columns=[Column("name")])


def _switch(invocation: Invocation, names: tuple[str, ...], *, enabled: bool) -> None:
    """All of them or, if one does not exist, none."""
    with open_application(invocation) as application:
        for name in names:
            application.jobs.get(name)
        views = [application.jobs.set_enabled(name, enabled) for name in dict.fromkeys(names)]
    job_views.emit_list(invocation, views)


def _tell_changes(
    invocation: Invocation, before: "JobView", after: "JobView", *, dry_run: bool
) -> None:
    if before.spec == after.spec:
        say(invocation, f"'{after.name}' already has these values.")
        return
    say(invocation, DRY_RUN if dry_run else f"Changed '{after.name}':")
    for change in describe_changes(before.definition(), after.definition()):
        say(invocation, f"  {change}")


def _warn_of_missing(invocation: Invocation, application: "Application", view: "JobView") -> None:
    """A warning only: another machine may execute the job."""
    missing = application.jobs.missing_here(view.spec, invocation.environ)
    if missing is not None:
        warn(invocation, f"{missing}: on this machine, runs of '{view.name}' will not succeed")


def _show(invocation: Invocation, view: "JobView") -> None:
    emit(invocation, view.as_dict(), columns=job_views.SUMMARY)
