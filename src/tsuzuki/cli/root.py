"""The table of commands, and the entry point from arguments to exit code."""

import gc
import os
import select
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

import click
from click.exceptions import Exit
from click.shell_completion import shell_complete

from tsuzuki.cli.commands import (
    COMPLETE_VARIABLE,
    PROGRAM,
    CollectorCommand,
    LazyCommand,
    LazyGroup,
    RefusedCommand,
)
from tsuzuki.cli.errors import EXIT_CODE_MEANINGS, EXIT_READER_GONE, report
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.options import read_global_options

COMMANDS: dict[str, LazyCommand] = {
    "init": LazyCommand(
        "tsuzuki.cli.init:init",
        "Create a workspace: a commented tsuzuki.yaml with one job, and its database.",
    ),
    "demo": LazyCommand(
        "tsuzuki.cli.demo.demo:demo",
        "Start a demo with sample jobs, stand-ins for outside services and the web page.",
    ),
    "up": LazyCommand(
        "tsuzuki.cli.serve.up:up",
        "Start the engine, the web page and the HTTP API.",
    ),
    "web": LazyCommand(
        "tsuzuki.cli.serve.web:web",
        "Start only the web page and the HTTP API.",
    ),
    "run-due": LazyCommand("tsuzuki.cli.run.due:run_due", "Run everything that is due, then exit."),
    "job": LazyCommand("tsuzuki.cli.job.job:job", "List, start, add and change jobs."),
    "run": LazyCommand("tsuzuki.cli.run.run:run", "List, watch, explain, cancel and retry runs."),
    "event": LazyCommand("tsuzuki.cli.event:event", "Emit and list events."),
    "worker": LazyCommand(
        "tsuzuki.cli.worker:worker",
        "Start a worker that never leads, or manage workers.",
    ),
    "leader": LazyCommand("tsuzuki.cli.leader:leader", "Show the leader, or make it step down."),
    "settings": LazyCommand(
        "tsuzuki.cli.settings:settings",
        "Show and change settings while everything is running.",
    ),
    "audit": LazyCommand("tsuzuki.cli.audit:audit", "Show who changed what, and when."),
    "token": LazyCommand(
        "tsuzuki.cli.access.api_token:token",
        "Create and revoke tokens for programs that use the API.",
    ),
    "user": LazyCommand("tsuzuki.cli.access.user:user", "Manage users, their roles and passwords."),
    "db": LazyCommand("tsuzuki.cli.db:db", "Upgrade, check, back up and restore the database."),
    "config": LazyCommand("tsuzuki.cli.config:config", "Check and show the configuration."),
    "doctor": LazyCommand(
        "tsuzuki.cli.doctor:doctor",
        "Check the workspace and its services, and suggest fixes.",
    ),
    "verify": LazyCommand(
        "tsuzuki.cli.verify:verify",
        "Compare stored data with its source and report what is missing.",
    ),
    "mcp": LazyCommand(
        "tsuzuki.cli.serve.mcp:mcp",
        "Serve tools to coding agents over the Model Context Protocol (MCP).",
    ),
    "sandbox": LazyCommand(
        "tsuzuki.cli.serve.sandbox:sandbox",
        "Start stand-ins for outside services, and show how to use them.",
    ),
    "completion": LazyCommand(
        "tsuzuki.cli.completion:completion", "Print a shell's completion script."
    ),
}
"""Every command but those of collectors, in the order in which `tsuzuki --help` shows them."""


def collector_commands() -> dict[str, LazyCommand]:
    """The commands that collectors bring. That of a refused one says why."""
    from tsuzuki.wiring.collectors import collector_records

    records = collector_records()
    refused = {
        name: RefusedCommand("", problem.message, problem=problem)
        for name, problem in records.refused.items()
    }
    usable: dict[str, LazyCommand] = {}
    for collector in records.usable.values():
        for name, target in collector.commands.items():
            usable.setdefault(name, CollectorCommand(target, collector.summary))
    return {**refused, **usable}


@click.version_option(package_name="tsuzuki", message="%(prog)s %(version)s")
def _root() -> None:
    """Tsuzuki runs jobs that must continue, with a relational database as the only truth."""


ROOT = click.group(
    PROGRAM,
    cls=LazyGroup,
    lazy_commands=COMMANDS,
    more_commands=collector_commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
    epilog="Exit codes: "
    + ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODE_MEANINGS.items())
    + ".",
)(_root)


GARBAGE_THRESHOLD = 300_000
"""A command loads over 100,000 objects that stay until it ends, and looking for garbage among them, while it runs and
when it ends, was a quarter of its processor time. An engine and a server set a threshold of their own when they have
started."""


def run_cli(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    root: click.Command = ROOT,
) -> int:
    """Run one command line and return its exit code. Whatever fails has been told."""
    invocation = Invocation(environ=os.environ if environ is None else environ, cwd=cwd or Path())
    try:
        return _dispatch(arguments, invocation, root)
    except Exit as end:
        return end.exit_code
    except BrokenPipeError as error:
        if _reader_is_gone():
            return EXIT_READER_GONE
        return _report(error, arguments, invocation)
    except (Exception, KeyboardInterrupt) as failure:  # noqa: BLE001 - the outermost net: all is told
        return _report(failure, arguments, invocation)


def main() -> NoReturn:
    """The program `tsuzuki`."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    _accept_any_character(sys.stdout)
    code = run_cli(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        _settle(stream)
    gc.freeze()  # The interpreter looks for garbage once more when it ends.
    sys.exit(code)


def _dispatch(arguments: Sequence[str], invocation: Invocation, root: click.Command) -> int:
    # Not `root.main`: it turns a closed pipe into exit code 1 and an interrupt into a stray line.
    if instruction := invocation.environ.get(COMPLETE_VARIABLE):
        return shell_complete(root, {"obj": invocation}, PROGRAM, COMPLETE_VARIABLE, instruction)
    with root.make_context(PROGRAM, [*arguments], obj=invocation) as context:
        root.invoke(context)
    return 0


def _report(failure: BaseException, arguments: Sequence[str], invocation: Invocation) -> int:
    return report(failure, read_global_options(arguments, invocation))


def _reader_is_gone() -> bool:
    """Whether the reader of our output has gone; a broken pipe may also be a socket of a command."""
    watch = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            watch.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))


def _accept_any_character(stream: TextIO | None) -> None:
    """A character that the terminal's encoding lacks is printed as an escape, as stderr does."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _settle(stream: TextIO | None) -> None:
    """Flush; what cannot be written any more must not fail a second time at the very end."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
