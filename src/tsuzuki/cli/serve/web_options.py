"""The options of commands that serve HTTP, and the server they start."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import echo_error, echo_json_error, say, warn
from tsuzuki.model.errors import ConfigurationError, Conflict, TsuzukiError, extra_missing
from tsuzuki.model.import_string import load

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

DEFAULT_ADDRESS = "127.0.0.1:8420"
LINK_PATH = "/sign-in/link"
WEB_PACKAGES = ("fastapi", "uvicorn", "starlette", "anyio", "jinja2", "babel", "pwdlib")


def web_options(function: Any) -> Any:
    options = [
        click.option(
            "--listen",
            metavar="HOST:PORT",
            help=f"Address of the web page and the API (default: {DEFAULT_ADDRESS}; port 0 picks a "
            "free one).",
        ),
        click.option(
            "--allow-host",
            "allowed_hosts",
            metavar="NAME",
            multiple=True,
            help="Additional host name of this server. Can be repeated.",
        ),
        click.option(
            "--trust-proxy",
            "trusted_proxies",
            metavar="ADDRESS",
            multiple=True,
            help="Trust X-Forwarded-For and X-Forwarded-Proto from this proxy (address or network).",
        ),
        click.option(
            "--setup",
            is_flag=True,
            help="Print a one-time code for creating the first admin.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True, kw_only=True)
class WebOptions:
    """How the API is to be served."""

    listen: str | None
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    setup: bool
    log_format: str = "text"


@contextmanager
def web_served(
    invocation: Invocation, application: "Application", options: WebOptions
) -> Iterator[str]:
    """Serve the API while the block runs; gives its address."""
    try:
        address = load("tsuzuki.web.server:parse_address")(options.listen or DEFAULT_ADDRESS)
        is_for_others = bool(options.trusted_proxies) or not address.is_loopback
        if is_for_others and not options.setup:
            _refuse_open_door(application, f"{address.host}:{address.port}")
        server = load("tsuzuki.web.server:WebServer")(
            application,
            address,
            allowed_hosts=options.allowed_hosts,
            trusted_proxies=options.trusted_proxies,
        )
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in WEB_PACKAGES:
            raise
        raise extra_missing(
            "FastAPI is not installed, so the API cannot be served", extra="web"
        ) from None
    server.start()
    try:
        if options.setup:
            code = application.setup_codes.create(actor=application.principal.actor)
            _show_code(invocation, code.text)
        elif server.signs_owner_in and options.log_format != "json":
            _tell_link(invocation, application, server.url)
        yield server.url
    finally:
        server.stop()


def _show_code(invocation: Invocation, code: str) -> None:
    """On stderr, also for a program and with --quiet: it is what was asked for, and is shown nowhere else."""
    if invocation.output.is_json:
        echo_json_error({"setup_code": code})
    else:
        echo_error(invocation, f"Create the first admin with this one-time code: {code}")


def _tell_link(invocation: Invocation, application: "Application", url: str) -> None:
    """A link for the person at the terminal; where the lines may be kept as a log, only how to get one."""
    address = url.removeprefix("http://")
    option = "" if address == DEFAULT_ADDRESS else f" --listen {address}"
    try:
        if application.users.any():
            return
        if sys.stderr.isatty() and not (invocation.quiet or invocation.output.is_json):
            link = new_link(application, url)
            say(invocation, f"Sign in within 15 minutes, once, with: {link['url']}")
            return
    except TsuzukiError as problem:  # the database is busy; the server answers all the same
        say(invocation, f"Could not create a sign-in link: {problem.message}.")
    say(invocation, f"Print a sign-in link with: tsuzuki web link{option}")


def new_link(application: "Application", url: str) -> dict[str, Any]:
    """A link by which the owner of a server at `url` signs in."""
    made = application.owner_links.create(actor=application.principal.actor)
    return {"url": f"{url}{LINK_PATH}?token={made.secret}", "expires_at": made.expires_at}


@contextmanager
def web_served_if_possible(
    invocation: Invocation, application: "Application", options: WebOptions
) -> Iterator[str | None]:
    """Serve the API beside an engine. The engine starts without it if a process of the same database serves it at
    that address already; or if FastAPI is not installed, unless an option asked for the API."""
    with ExitStack() as stack:
        url = None
        try:
            url = stack.enter_context(web_served(invocation, application, options))
        except ConfigurationError as problem:
            if options.listen is not None or options.setup or options.trusted_proxies:
                raise
            what = f"The web page and the API are not available: {problem.message}. {problem.hint}"
            warn(invocation, f"{what} To start without them, use --no-web.")
        except Conflict as problem:
            served_at = _served_by_neighbour(application, options)
            if served_at is None or options.setup:
                raise _port_taken(problem) from None
            say(
                invocation,
                f"The web page is at {served_at}, served by another process on this database.",
            )
        yield url


def _served_by_neighbour(application: "Application", options: WebOptions) -> str | None:
    """The address, if a process on the same database serves the API there."""
    address = load("tsuzuki.web.server:parse_address")(options.listen or DEFAULT_ADDRESS)
    url = str(address.url(address.port))
    found = load("tsuzuki.services.service_manager:installation_at")(url)
    return url if found == application.api_requests.installation else None


def _port_taken(problem: Conflict) -> Conflict:
    return Conflict(
        problem.message,
        hint="Another program or another database uses it. Name another address with --listen HOST:PORT (port 0 takes"
        " a free one), or start without the web page and the API: --no-web.",
        code=problem.specific_code,
    )


def _refuse_open_door(application: "Application", address: str) -> None:
    """A server that other machines reach, by its address or by a proxy, needs users, or a code for the first one."""
    if not application.users.any():
        raise ConfigurationError(
            f"there is no user yet, and {address} is reachable from other machines",
            hint="Add one with: tsuzuki user add NAME --role admin. Or start with --setup to print "
            "a one-time code for the first admin.",
            code="no_users",
        )
