"""`tsuzuki up`: lead and work in the foreground."""

from typing import Any

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.foreground import database_wait_option, engine_options, run_in_foreground
from tsuzuki.cli.invocation import Invocation
from tsuzuki.model.errors import UsageError


@click.command(cls=Command)
@engine_options
@database_wait_option
@click.option("--lead-only", is_flag=True, help="Plan and assign, but execute nothing here.")
@click.option("--work-only", is_flag=True, help="Execute, but leave leading to others.")
@click.pass_obj
def up(invocation: Invocation, /, lead_only: bool, work_only: bool, **options: Any) -> None:
    """Start everything: lead, and work.

    The jobs of the file are applied first, and again whenever the file changes. Any number of these
    may run on one database; one of them leads, all of them work. ^C stops it in good order.

    \b
    tsuzuki up
    tsuzuki up --capacity 4 --tag gpu
    """
    if lead_only and work_only:
        raise UsageError("--lead-only and --work-only exclude each other")
    run_in_foreground(
        invocation, lead=not work_only, work=not lead_only, apply=not work_only, **options
    )
