"""`tsuzuki sandbox`: stand-ins for the services that collectors use, for rehearsals and tests.

Each collector's record names its kinds of stand-in (`sandbox.stand_in_kind`).
"""

import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.collector_parts import collector_parts
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.serve.foreground import ProcessSignals
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.model.errors import Conflict

if TYPE_CHECKING:
    from tsuzuki.sandbox.stand_in_kind import StandInKind

LOOK_SECONDS = 0.2


class SandboxCommand(Command):
    """Takes the options of every kind of stand-in, which are looked up when the command is called."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*_options(_kinds()), *super().get_params(ctx)]


@click.command(cls=SandboxCommand)
@click.pass_obj
def sandbox(invocation: Invocation, /, **values: Any) -> None:
    """Start stand-ins for outside services, and show how to use them.

    The stand-ins are real servers on 127.0.0.1. Those that speak HTTP can be made to fail: POST a fault to
    their /_sandbox/faults. ^C stops them.

    \b
    tsuzuki sandbox
    """
    with ExitStack() as running:
        rows = [
            {"service": kind.name, "variable": name, "value": value}
            for kind in _kinds()
            for name, value in _started(invocation, kind, values, running).items()
        ]
        _tell(invocation, rows)
        signals = ProcessSignals()
        while not signals.received.wait(LOOK_SECONDS):
            pass
        say(invocation, "Stopping.")
    if signals.number == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)


def _kinds() -> "tuple[StandInKind, ...]":
    """By usual port. Of two with one name, the first collector's is kept."""
    kinds: dict[str, StandInKind] = {}
    for offered in collector_parts(lambda collector: collector.stand_ins).values():
        for kind in offered:
            kinds.setdefault(kind.name, kind)
    return tuple(sorted(kinds.values(), key=lambda kind: kind.usual_port))


@cache
def _options(kinds: "tuple[StandInKind, ...]") -> list[click.Option]:
    ports = [
        click.Option(
            [_port_option(kind)],
            type=click.IntRange(0, 65_535),
            default=kind.usual_port,
            help=f"Port of the {kind.title} on 127.0.0.1; 0 picks a free one.",
        )
        for kind in kinds
    ]
    return [*(option for kind in kinds for option in kind.options), *ports]


def _port_option(kind: "StandInKind") -> str:
    return f"--{kind.name}-port"


def _started(
    invocation: Invocation, kind: "StandInKind", values: Mapping[str, Any], running: ExitStack
) -> Mapping[str, str]:
    """The variables that point Tsuzuki at the stand-in; none if its libraries are not installed."""
    from tsuzuki.sandbox.ports import PortTaken
    from tsuzuki.sandbox.stand_in_kind import StandInContext

    try:
        start = kind.load()
    except ImportError:
        if kind.requirement is None:
            raise
        warn(
            invocation,
            f"{kind.title} is not available; install it with: pip install '{kind.requirement}'",
        )
        return {}
    context = StandInContext(
        port=values[f"{kind.name}_port".replace("-", "_")],
        options={str(option.name): values[str(option.name)] for option in kind.options},
        folder=invocation.cwd,
        say=partial(say, invocation),
        running=running,
    )
    try:
        return start(context)
    except PortTaken as taken:
        raise Conflict(
            f"cannot use port {taken.port} on 127.0.0.1: {taken.reason}",
            hint=f"Choose another one with {_port_option(kind)}, or 0 for a free one.",
            code="port_in_use",
        ) from taken


def _tell(invocation: Invocation, rows: Sequence[Mapping[str, str]]) -> None:
    """The variables as data, and as lines to copy."""
    emit(invocation, rows, columns=[Column("service"), Column("variable"), Column("value")])
    say(invocation, "In the terminal where Tsuzuki runs:")
    for row in rows:
        say(invocation, f"  export {row['variable']}={shlex.quote(row['value'])}")
    say(invocation, "Press ^C to stop.")
