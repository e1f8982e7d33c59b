"""`tsuzuki sandbox`: stand-ins for the services collectors talk to, to rehearse with."""

import shlex
import signal
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.failures import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column, emit, say
from tsuzuki.cli.serving import EXIT_INTERRUPTED
from tsuzuki.model.errors import NotFound, Unreachable

LOOK_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Service:
    """A stand-in that runs, and what points Tsuzuki at it."""

    name: str
    variables: Mapping[str, str]


@click.command(cls=Command)
@click.option(
    "--repositories",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Git repositories to serve as GitLab projects. Without it, a demo is made.",
)
@click.option(
    "--gitlab-port",
    type=click.IntRange(0, 65_535),
    default=8929,
    help="Port of the GitLab on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--requests-per-minute",
    type=click.IntRange(1),
    metavar="N",
    help="Turn away more requests than this to the GitLab. Without it, nothing is limited.",
)
@click.pass_obj
def sandbox(
    invocation: Invocation,
    /,
    repositories: Path | None,
    gitlab_port: int,
    requests_per_minute: int | None,
) -> None:
    """Start stand-ins for outside services, and say how to point Tsuzuki at them.

    They are real servers on 127.0.0.1, and they can be made to fail: POST a fault to
    /_sandbox/faults of any of them. ^C ends them.

    \b
    tsuzuki sandbox
    tsuzuki sandbox --repositories ~/src --gitlab-port 0
    """
    with ExitStack() as running:
        services = [_gitlab(running, invocation, repositories, gitlab_port, requests_per_minute)]
        _tell(invocation, services)
        number = _wait_for_signal()
        say(invocation, "Stopping.")
    if number == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)


def _gitlab(
    running: ExitStack,
    invocation: Invocation,
    repositories: Path | None,
    port: int,
    requests_per_minute: int | None,
) -> Service:
    from tsuzuki.sandbox.gitlab import TOKEN, gitlab  # noqa: PLC0415 - slow to load
    from tsuzuki.sandbox.gitlab.demo import make_demo  # noqa: PLC0415 - slow to load
    from tsuzuki.sandbox.server import StandIn  # noqa: PLC0415 - slow to load

    if repositories is None:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tsuzuki-")))
        make_demo(folder)
    else:
        folder = invocation.cwd / repositories
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}", hint="Name a folder of repositories.")
    application = gitlab(folder, requests_per_minute=requests_per_minute)
    try:
        server = running.enter_context(StandIn(application, port=port))
    except OSError as problem:
        raise Unreachable(
            f"port {port} of 127.0.0.1 cannot be used: {problem.strerror}",
            hint="Choose another one with --gitlab-port, or 0 for a free one.",
        ) from problem
    say(invocation, f"GitLab serves {len(application.projects.all())} projects of {folder}.")
    variables = {
        "TSUZUKI_COMMITS_GITLAB_URL": server.url,
        "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN,
    }
    return Service(name="gitlab", variables=variables)


def _tell(invocation: Invocation, services: list[Service]) -> None:
    """The variables as data, and as lines to copy."""
    rows = [
        {"service": service.name, "variable": name, "value": value}
        for service in services
        for name, value in service.variables.items()
    ]
    emit(invocation, rows, columns=[Column("service"), Column("variable"), Column("value")])
    say(invocation, "In the terminal where Tsuzuki runs:")
    for row in rows:
        say(invocation, f"  export {row['variable']}={shlex.quote(row['value'])}")
    say(invocation, "Stop with ^C.")


def _wait_for_signal() -> int:
    """The first signal that asks us to end; a second one is not needed, for nothing is lost."""
    asked = threading.Event()
    received: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    while not asked.wait(LOOK_SECONDS):
        pass
    return received[0]
