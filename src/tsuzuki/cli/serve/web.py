"""`tsuzuki web`: serve only the web page and the API, and print sign-in links for servers without users."""

import os
import signal
from dataclasses import replace

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.serve.foreground import ProcessSignals, log_format_option, write_log
from tsuzuki.cli.serve.web_options import (
    DEFAULT_ADDRESS,
    WebOptions,
    new_link,
    web_options,
    web_served,
)
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.import_string import load

FILE_CHECK_SECONDS = 1.0
"""How often to look whether the file of an SQLite database is still the one that was opened."""


@click.group(cls=Group, invoke_without_command=True)
@web_options
@log_format_option
@click.pass_context
def web(
    context: click.Context,
    listen: str | None,
    allowed_hosts: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    setup: bool,
    log_format: str,
) -> None:
    """Start only the web page and the HTTP API.

    You can start this command any number of times on one database. `tsuzuki up` includes it.

    \b
    tsuzuki web
    tsuzuki web --listen 127.0.0.1:9000
    """
    if context.invoked_subcommand is None:
        options = WebOptions(
            listen=listen,
            allowed_hosts=allowed_hosts,
            trusted_proxies=trusted_proxies,
            setup=setup,
            log_format=log_format,
        )
        _serve(context.obj, options)


@web.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    help=f"Address of the server (default: {DEFAULT_ADDRESS}).",
)
@click.pass_obj
def link(invocation: Invocation, listen: str) -> None:
    """Print a sign-in link, as long as there are no users.

    The link works once, within 15 minutes, and signs a browser in for 30 days.

    \b
    tsuzuki web link
    tsuzuki web link --listen 127.0.0.1:9000
    """
    address = load("tsuzuki.web.server:parse_address")(listen)
    with open_application(invocation) as application:
        made = new_link(application, address.url(address.port))
    is_table = invocation.output is OutputFormat.TABLE
    plain = replace(invocation, output=OutputFormat.PLAIN) if is_table else invocation
    emit(plain, made, columns=[Column("url")])
    say(invocation, "Open it within 15 minutes; it works once.")


def _serve(invocation: Invocation, options: WebOptions) -> None:
    from tsuzuki.services.garbage_collection import freeze_loaded_objects
    from tsuzuki.services.service_manager import ServiceManager, answers

    with open_application(invocation) as application:
        write_log(invocation, log_format=options.log_format)
        signals = ProcessSignals()
        manager = ServiceManager(invocation.environ, pid=os.getpid())
        with web_served(invocation, application, options) as url:
            freeze_loaded_objects()
            if options.log_format != "json":  # else every line of stderr is one of the log
                say(
                    invocation,
                    f"Serving the web page and the API on {url}; the API is documented at {url}/docs. "
                    "Press ^C to stop.",
                )
            manager.ready(f"Serving on {url}")
            with manager.told_alive(lambda: answers(url)):
                while not signals.received.wait(FILE_CHECK_SECONDS):
                    application.maintenance.require_same_file()
            manager.stopping("Closing open connections")
    if signals.number == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)
