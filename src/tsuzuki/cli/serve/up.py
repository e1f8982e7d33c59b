"""`tsuzuki up`: run the engine, the web page and the API in the foreground."""

from functools import partial
from typing import Any

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.serve.foreground import database_wait_option, engine_options, run_in_foreground
from tsuzuki.cli.serve.web_options import WebOptions, web_options, web_served_if_possible
from tsuzuki.model.errors import UsageError


@click.command(cls=Command)
@engine_options
@database_wait_option
@click.option("--lead-only", is_flag=True, help="Plan and assign runs, but execute none here.")
@click.option("--work-only", is_flag=True, help="Execute runs, but never become the leader.")
@click.option("--no-web", is_flag=True, help="Do not serve the web page and the HTTP API.")
@web_options
@click.pass_obj
def up(
    invocation: Invocation,
    /,
    lead_only: bool,
    work_only: bool,
    no_web: bool,
    listen: str | None,
    allowed_hosts: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    setup: bool,
    **options: Any,
) -> None:
    """Start the engine, the web page and the HTTP API.

    Applies the jobs in the file first, and again whenever the file changes. You can start this command
    any number of times on one database: one process leads, all of them work. ^C shuts it down cleanly.

    \b
    tsuzuki up
    tsuzuki up --capacity 4 --tag gpu
    tsuzuki up --listen 127.0.0.1:9000
    """
    if lead_only and work_only:
        raise UsageError(
            "--lead-only and --work-only cannot be combined",
            hint="Use one of them, or neither to both lead and work.",
        )
    web = WebOptions(
        listen=listen,
        allowed_hosts=allowed_hosts,
        trusted_proxies=trusted_proxies,
        setup=setup,
        log_format=options["log_format"],
    )
    serve = partial(web_served_if_possible, invocation, options=web)
    run_in_foreground(
        invocation,
        lead=not work_only,
        work=not lead_only,
        apply=not work_only,
        serve_beside=None if no_web else serve,
        **options,
    )
