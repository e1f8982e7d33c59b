"""`tsuzuki worker`: start, list, drain and detach workers."""

from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import worker_ids
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.serve.foreground import database_wait_option, engine_options, run_in_foreground
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.formatting import format_duration, format_list
from tsuzuki.cli.terminal.output import Column, emit, say


def _format_silence(seconds: float | None) -> str:
    return "unknown (clock skew)" if seconds is None else f"{format_duration(round(seconds))} ago"


COLUMNS = [
    Column("id", "WORKER"),
    Column("state"),
    Column("held", "RUNS", align="right"),
    Column("capacity", align="right"),
    Column("tags", format=format_list),
    Column("silent_seconds", "LAST SEEN", format=_format_silence),
    Column("leads", format=lambda leads: "leads" if leads else "-"),
]


@click.group(cls=Group, invoke_without_command=True)
@engine_options
@database_wait_option
@click.pass_context
def worker(context: click.Context, /, **options: Any) -> None:
    """Start a worker that never leads, or manage workers.

    \b
    tsuzuki worker --capacity 4
    tsuzuki worker ls
    """
    if context.invoked_subcommand is None:
        run_in_foreground(context.obj, lead=False, work=True, apply=False, **options)


@worker.command()
@click.option("--all", "with_gone", is_flag=True, help="Include stopped workers.")
@click.pass_obj
def ls(invocation: Invocation, with_gone: bool) -> None:
    """List workers with their load and when they were last seen.

    \b
    tsuzuki worker ls --all
    """
    with open_application(invocation) as application:
        views = application.workers.workers(with_gone=with_gone)
    emit(
        invocation,
        [view.as_dict() for view in views],
        columns=COLUMNS,
        empty="no workers; start one with: tsuzuki up",
    )


@worker.command()
@click.argument("worker_id", metavar="WORKER", shell_complete=worker_ids)
@click.pass_obj
def drain(invocation: Invocation, worker_id: str) -> None:
    """Drain a worker: let it finish its runs, assign it no new ones, then stop it.

    \b
    tsuzuki worker drain host-1234-a1b2c3
    """
    with open_application(invocation) as application:
        application.workers.drain(worker_id)
        view = application.workers.get(worker_id)
    say(invocation, f"'{worker_id}' is draining: it will finish its runs and stop.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, view.as_dict(), columns=COLUMNS)


@worker.command()
@click.argument("worker_id", metavar="WORKER", shell_complete=worker_ids)
@yes_option
@click.pass_obj
def detach(invocation: Invocation, worker_id: str, yes: bool) -> None:
    """Detach a worker: stop its runs and retry them on other workers.

    \b
    tsuzuki worker detach host-1234-a1b2c3 --yes
    """
    with open_application(invocation) as application:
        application.workers.get(worker_id)
        confirm(invocation, f"stop all runs on {worker_id}", yes=yes)
        application.workers.detach(worker_id)
        view = application.workers.get(worker_id)
    say(invocation, f"'{worker_id}' detached.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, view.as_dict(), columns=COLUMNS)
