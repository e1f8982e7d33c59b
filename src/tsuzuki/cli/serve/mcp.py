"""`tsuzuki mcp`: tools for coding agents, over the Model Context Protocol."""

import gc
import secrets
import sys

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import is_terminal, say
from tsuzuki.model.errors import UsageError, extra_missing
from tsuzuki.model.import_string import load

DEFAULT_PORT = 8940
TOKEN_VARIABLE = "TSUZUKI_MCP_TOKEN"  # noqa: S105 -- the name of a variable
TOKEN_LENGTH_MIN = 16
TOOL_SETS: tuple[str, ...] = (*load("tsuzuki.mcp.presets:presets")(),)
"""Those of the installed collectors first. This module is only imported for `tsuzuki mcp`, which needs them anyway."""


@click.command(cls=Command)
@click.option(
    "--root",
    metavar="FOLDER",
    help="Tree to answer questions about (default: the client's, or the one around this folder).",
)
@click.option(
    "--tools",
    type=click.Choice(TOOL_SETS),
    default=TOOL_SETS[0],
    help="Set of tools to offer.",
)
@click.option("--http", is_flag=True, help="Serve HTTP on 127.0.0.1 instead of stdin and stdout.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help=f"Port for --http (default: {DEFAULT_PORT}; 0 picks a free one).",
)
@click.option(
    "--no-token",
    "is_open",
    is_flag=True,
    help="Serve HTTP without a token, to every user of this machine.",
)
@click.pass_obj
def mcp(
    invocation: Invocation,
    root: str | None,
    tools: str,
    http: bool,
    port: int | None,
    is_open: bool,
) -> None:
    """Serve tools to coding agents over the Model Context Protocol (MCP).

    An agent starts this command and talks to it over stdin and stdout. Only the tools for runs need a
    workspace. With --http, clients send the printed token; set TSUZUKI_MCP_TOKEN to keep the same one.

    \b
    tsuzuki mcp
    tsuzuki mcp --root ~/src/django
    tsuzuki mcp --tools all
    tsuzuki mcp --http --port 8940
    """
    if is_open and not http:
        raise UsageError("--no-token requires --http", hint="Use: tsuzuki mcp --http --no-token")
    if port is not None and not http:
        raise UsageError("--port requires --http", hint="Use: tsuzuki mcp --http --port PORT")
    gc.disable()  # loading the SDK makes a million objects and no garbage
    try:
        state = load("tsuzuki.mcp.serve:server_state")(
            environ=invocation.environ,
            cwd=invocation.cwd,
            root=root,
            sources=invocation.sources,
            is_confined=http,
        )
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise extra_missing("the MCP SDK is not installed", extra="mcp") from None
    finally:
        gc.freeze()
        gc.enable()
    if http:
        token = None if is_open else _token(invocation)
        was_interrupted = load("tsuzuki.mcp.serve:serve_http")(
            tools,
            state,
            port=DEFAULT_PORT if port is None else port,
            token=token,
            on_start=lambda url: _say_address(invocation, url, token),
        )
        if was_interrupted:
            raise ExitWith(EXIT_INTERRUPTED)
        return
    if is_terminal(sys.stdin):
        say(invocation, "Agents talk to this command over stdin and stdout. Press ^C to stop.")
    load("tsuzuki.mcp.serve:serve_stdio")(tools, state)


def _token(invocation: Invocation) -> str:
    given = invocation.environ.get(TOKEN_VARIABLE, "").strip()
    if given and (len(given) < TOKEN_LENGTH_MIN or not given.isascii() or not given.isprintable()):
        raise UsageError(
            f"{TOKEN_VARIABLE} is too easy to guess, or contains characters that an HTTP "
            "header cannot carry",
            hint=f"Use at least {TOKEN_LENGTH_MIN} random ASCII characters, such as: openssl rand "
            "-hex 32",
            code="weak_token",
        )
    return given or secrets.token_urlsafe(32)


def _say_address(invocation: Invocation, url: str, token: str | None) -> None:
    say(invocation, f"Serving agents on {url}. Press ^C to stop.")
    if token is None:
        say(invocation, "Every user of this machine can use it, because no token is required.")
    elif TOKEN_VARIABLE not in invocation.environ:
        say(invocation, f"Clients send this header: Authorization: Bearer {token}")
    else:
        say(invocation, f"Clients send this header: Authorization: Bearer ${TOKEN_VARIABLE}")
