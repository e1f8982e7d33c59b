"""Describes the stand-ins that a collector adds to `tsuzuki sandbox`, without loading them.

STAND_INS = (
    StandInKind(
        name="weather", title="weather service", usual_port=8950, start="weather.sandbox.api:start"
    ),
)

def start(context: StandInContext) -> dict[str, str]:
    server = context.serve(Weather())
    return {"TSUZUKI_WEATHER_URL": server.url}
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tsuzuki.model.import_string import load

from .exchange import Application
from .ports import ServerT, start_on
from .server import StandIn


@dataclass(frozen=True, kw_only=True)
class StandInContext:
    """What a stand-in is started with."""

    port: int
    """0 takes a free one."""

    options: Mapping[str, Any]
    """Values of the options of its `StandInKind`, by parameter name."""

    folder: Path
    """Where relative paths begin."""

    say: Callable[[str], None]
    """Tells a person at the terminal something."""

    running: ExitStack
    """Closed when the command ends."""

    def serve(self, application: Application) -> StandIn:
        """Serve an HTTP application until the command ends. Raises `PortTaken`."""
        return self.run(lambda port: StandIn(application, port=port))

    def run(self, make: Callable[[int], ServerT]) -> ServerT:
        """Run the server that `make` returns for the port until the command ends. Raises `PortTaken`."""
        server = start_on([self.port], make)
        self.running.callback(server.stop)
        return server


@dataclass(frozen=True, kw_only=True)
class StandInKind:
    """A stand-in that `tsuzuki sandbox` starts."""

    name: str
    """Names its rows in the output and its option `--NAME-port`."""

    title: str
    """What it stands in for, in the help and in warnings."""

    usual_port: int
    """The stand-ins of all collectors are started and listed in the order of their usual ports."""

    start: str
    """Import string of a function that gets a `StandInContext`, starts the server and returns the environment variables
    that point Tsuzuki at it."""

    options: tuple[click.Option, ...] = ()
    """Options of its own, beside that of the port."""

    requirement: str | None = None
    """The requirement that installs its libraries. Without them, the command warns and continues without this stand-in.
    None: it needs none."""

    def load(self) -> Callable[[StandInContext], Mapping[str, str]]:
        """The function that starts it. Raises `ImportError` if a library is missing."""
        function: Callable[[StandInContext], Mapping[str, str]] = load(self.start)
        return function
