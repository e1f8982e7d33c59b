"""The options of the commands that serve HTTP, and the server that they start."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.commands import load
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import warn
from tsuzuki.model.errors import ConfigurationError, Unreachable, extra_missing

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

DEFAULT_ADDRESS = "127.0.0.1:8420"
WEB_PACKAGES = ("fastapi", "uvicorn", "starlette", "anyio", "jinja2", "babel", "pwdlib")


def web_options(function: Any) -> Any:
    options = [
        click.option(
            "--listen",
            metavar="HOST:PORT",
            help=f"Where the API is served; {DEFAULT_ADDRESS} unless said, port 0 takes a free one.",
        ),
        click.option(
            "--allow-host",
            "allowed_hosts",
            metavar="NAME",
            multiple=True,
            help="A further name that this server is known by.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@contextmanager
def web_served(
    application: "Application", *, listen: str | None, allowed_hosts: tuple[str, ...]
) -> Iterator[str]:
    """Serve the API while the block runs; gives its address."""
    try:
        address = load("tsuzuki.web.server:parse_address")(listen or DEFAULT_ADDRESS)
        server = load("tsuzuki.web.server:WebServer")(
            application, address, allowed_hosts=allowed_hosts
        )
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in WEB_PACKAGES:
            raise
        raise extra_missing(
            "the API cannot be served: FastAPI is not installed", extra="web"
        ) from None
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def web_served_if_possible(
    invocation: Invocation,
    application: "Application",
    *,
    listen: str | None,
    allowed_hosts: tuple[str, ...],
) -> Iterator[str | None]:
    """The same beside an engine. If the address was not asked for, an engine starts without the API too: a second
    one on this machine finds the port in use, and a core installation has no FastAPI."""
    with ExitStack() as stack:
        url = None
        try:
            served = web_served(application, listen=listen, allowed_hosts=allowed_hosts)
            url = stack.enter_context(served)
        except (Unreachable, ConfigurationError) as problem:
            if listen is not None:
                raise
            warn(invocation, f"The API is not served: {problem.message}. {problem.hint}")
        yield url
