"""`tsuzuki up` and `tsuzuki worker`: run the engine in the foreground."""

from typing import Any

import click

from tsuzuki.cli.application import application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import say
from tsuzuki.cli.serving import log_to_stderr, serve, serving_options
from tsuzuki.model.errors import UsageError


@click.command(cls=Command)
@serving_options
@click.option("--lead-only", is_flag=True, help="Plan and assign, but execute nothing here.")
@click.option("--work-only", is_flag=True, help="Execute, but leave leading to others.")
@click.pass_obj
def up(invocation: Invocation, /, lead_only: bool, work_only: bool, **options: Any) -> None:
    """Start everything: lead, and work.

    The jobs of the file are applied first. Any number of these may run on one database; one of them
    leads, all of them work. ^C stops it in good order.

    \b
    tsuzuki up
    tsuzuki up --capacity 4 --tag gpu
    """
    if lead_only and work_only:
        raise UsageError("--lead-only and --work-only exclude each other")
    run_engine(invocation, lead=not work_only, work=not lead_only, apply=not work_only, **options)


def run_engine(
    invocation: Invocation,
    *,
    lead: bool,
    work: bool,
    apply: bool,
    capacity: int,
    tags: tuple[str, ...],
    metrics_port: int | None,
    log_format: str,
) -> None:
    from tsuzuki.engine.role import Role
    from tsuzuki.wiring.engine import build_engine

    with application(invocation) as workspace:
        if apply:
            changes = workspace.jobs.apply()
            if changes:
                say(invocation, f"Applied {len(changes)} changes of the file.")
        log_to_stderr(invocation, log_format=log_format)
        role = Role(lead=lead, work=work, capacity=capacity, tags=frozenset(tags))
        engine = build_engine(workspace.resources, role, {})
        database = workspace.resources.database.engine.url.render_as_string(hide_password=True)
        greeting = [
            f"Running on {database}. In another terminal: tsuzuki run ls",
            "Stop with ^C.",
        ]
        serve(invocation, engine, metrics_port=metrics_port, greeting=greeting)
