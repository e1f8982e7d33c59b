"""`tsuzuki web`: serve the web page and the API alone."""

import os
import signal

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.foreground import ProcessSignals, log_format_option, write_log
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import say
from tsuzuki.cli.web_options import WebOptions, web_options, web_served


@click.command(cls=Command)
@web_options
@log_format_option
@click.pass_obj
def web(
    invocation: Invocation,
    listen: str | None,
    allowed_hosts: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    setup: bool,
    log_format: str,
) -> None:
    """Serve the web page and the HTTP API alone; leading and working is left to others.

    Any number of these may run on one database. `tsuzuki up` serves it too.

    \b
    tsuzuki web
    tsuzuki web --listen 127.0.0.1:9000
    """
    from tsuzuki.services.garbage_collection import freeze_loaded_objects
    from tsuzuki.services.service_manager import ServiceManager, answers

    with open_application(invocation) as application:
        write_log(invocation, log_format=log_format)
        signals = ProcessSignals()
        manager = ServiceManager(invocation.environ, pid=os.getpid())
        options = WebOptions(
            listen=listen,
            allowed_hosts=allowed_hosts,
            trusted_proxies=trusted_proxies,
            setup=setup,
        )
        with web_served(invocation, application, options) as url:
            freeze_loaded_objects()
            if log_format != "json":  # else every line of stderr is one of the log
                say(
                    invocation,
                    f"Serving the web page and the API on {url}; the API's routes: {url}/docs."
                    " Stop with ^C.",
                )
            manager.ready(f"Serving on {url}")
            with manager.told_alive(lambda: answers(url)):
                signals.received.wait()
            manager.stopping("Ending open answers")
    if signals.number == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)
