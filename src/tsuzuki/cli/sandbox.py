"""`tsuzuki sandbox`: stand-ins for the services collectors talk to, to rehearse with."""

import shlex
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.foreground import ProcessSignals
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column, emit, say, warn
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.import_string import load

LOOK_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Service:
    """A stand-in that runs, and what points Tsuzuki at it."""

    name: str
    variables: Mapping[str, str]


def _port_option(name: str, default: int, service: str) -> Callable[[Any], Any]:
    return click.option(
        name,
        type=click.IntRange(0, 65_535),
        default=default,
        help=f"Port of the {service} on 127.0.0.1; 0 takes a free one.",
    )


@click.command(cls=Command)
@click.option(
    "--repositories",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Git repositories to serve as GitLab projects. Without it, a demo is made.",
)
@click.option(
    "--requests-per-minute",
    type=click.IntRange(1),
    metavar="N",
    help="Turn away more requests than this to the GitLab. Without it, nothing is limited.",
)
@_port_option("--gitlab-port", 8929, "GitLab")
@_port_option("--books-port", 8930, "Google Books")
@_port_option("--mail-port", 8931, "mail server")
@_port_option("--feeds-port", 8932, "feed site")
@_port_option("--gemini-port", 8933, "Gemini")
@_port_option("--openai-port", 8934, "OpenAI-compatible server")
@_port_option("--mastodon-port", 8935, "Mastodon")
@click.pass_obj
def sandbox(
    invocation: Invocation,
    /,
    repositories: Path | None,
    requests_per_minute: int | None,
    **ports: int,
) -> None:
    """Start stand-ins for outside services, and say how to point Tsuzuki at them.

    They are real servers on 127.0.0.1, and those that speak HTTP can be made to fail: POST a fault
    to /_sandbox/faults of any of them. ^C ends them.

    \b
    tsuzuki sandbox
    tsuzuki sandbox --repositories ~/src --gitlab-port 0
    """
    with ExitStack() as running:
        folder = _repositories(running, invocation, repositories)
        services = [
            _gitlab(running, folder, ports["gitlab_port"], requests_per_minute),
            _books(running, ports["books_port"]),
            *_mail(running, invocation, ports["mail_port"]),
            _feeds(running, ports["feeds_port"]),
            _gemini(running, ports["gemini_port"]),
            _openai(running, ports["openai_port"]),
            *_mastodon(running, invocation, ports["mastodon_port"]),
        ]
        _tell(invocation, services)
        signals = ProcessSignals()
        while not signals.received.wait(LOOK_SECONDS):
            pass
        say(invocation, "Stopping.")
    if signals.number == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)


def _repositories(running: ExitStack, invocation: Invocation, chosen: Path | None) -> Path:
    """The folder that was named, or one with the demo that is gone when we are."""
    if chosen is None:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tsuzuki-")))
        load("tsuzuki.sandbox.gitlab.demo:make_demo")(folder)
    else:
        folder = invocation.cwd / chosen
        if not folder.is_dir():
            raise NotFound(f"there is no folder {folder}", hint="Name a folder of repositories.")
    say(invocation, f"The GitLab serves the repositories in {folder}.")
    return folder


def _gitlab(running: ExitStack, folder: Path, port: int, per_minute: int | None) -> Service:
    with _port_told(port, "--gitlab-port"):
        application = load("tsuzuki.sandbox.gitlab:gitlab")(folder, requests_per_minute=per_minute)
        server = running.enter_context(
            load("tsuzuki.sandbox.server:StandIn")(application, port=port)
        )
    return Service(
        name="gitlab",
        variables={
            "TSUZUKI_COMMITS_GITLAB_URL": server.url,
            "TSUZUKI_COMMITS_GITLAB_TOKEN": load("tsuzuki.sandbox.gitlab:TOKEN"),
        },
    )


def _books(running: ExitStack, port: int) -> Service:
    with _port_told(port, "--books-port"):
        application = load("tsuzuki.sandbox.google_books:GoogleBooks")()
        server = running.enter_context(
            load("tsuzuki.sandbox.server:StandIn")(application, port=port)
        )
    return Service(
        name="books",
        variables={
            "TSUZUKI_BOOKS_BASE_URL": f"{server.url}/books/v1",
            "TSUZUKI_BOOKS_API_KEY": "sandbox-key",
        },
    )


def _mail(running: ExitStack, invocation: Invocation, port: int) -> list[Service]:
    """The mail server, which takes what comes and tells of it; none without its library."""
    try:
        mail_server = load("tsuzuki.sandbox.smtp:MailServer")
    except ImportError:
        warn(invocation, "no mail server: install one with pip install 'tsuzuki[sandbox]'")
        return []
    server = mail_server(port=port)
    server.when_taken = lambda message: say(
        invocation, f"Mail for {message['To']}: {message['Subject']}"
    )
    with _port_told(port, "--mail-port"):
        running.enter_context(server)
    return [
        Service(
            name="mail",
            variables={
                "TSUZUKI_BOOKS_MAIL_HOST": server.host,
                "TSUZUKI_BOOKS_MAIL_PORT": str(server.port),
                "TSUZUKI_BOOKS_MAIL_ENCRYPTION": "none",
                "TSUZUKI_BOOKS_MAIL_FROM": "tsuzuki@localhost",
                "TSUZUKI_BOOKS_MAIL_TO": "you@localhost",
            },
        )
    ]


def _feeds(running: ExitStack, port: int) -> Service:
    """The demo of the feed site. Its variables are addresses to use, not settings."""
    demo = "tsuzuki.sandbox.feed_site.demo"
    with _port_told(port, "--feeds-port"):
        server = running.enter_context(load(f"{demo}:make_demo")().serve(port=port))
    return Service(
        name="feeds",
        variables={
            "SANDBOX_FEED_JAPANESE": server.url + load(f"{demo}:JAPANESE_FEED"),
            "SANDBOX_FEED_ENGLISH": server.url + load(f"{demo}:ENGLISH_FEED"),
            "SANDBOX_FEED_ATOM": server.url + load(f"{demo}:ATOM_FEED"),
        },
    )


def _gemini(running: ExitStack, port: int) -> Service:
    with _port_told(port, "--gemini-port"):
        server = running.enter_context(_served("tsuzuki.sandbox.gemini:Gemini", port))
    return Service(
        name="gemini",
        variables={
            "SANDBOX_GEMINI_URL": server.url,
            "SANDBOX_GEMINI_KEY": load("tsuzuki.sandbox.gemini:KEY"),
        },
    )


def _openai(running: ExitStack, port: int) -> Service:
    package = "tsuzuki.sandbox.openai_compatible"
    with _port_told(port, "--openai-port"):
        server = running.enter_context(_served(f"{package}:OpenAICompatible", port))
    return Service(
        name="openai",
        variables={
            "SANDBOX_OPENAI_URL": f"{server.url}/v1",
            "SANDBOX_OPENAI_KEY": load(f"{package}:KEY"),
        },
    )


def _mastodon(running: ExitStack, invocation: Invocation, port: int) -> list[Service]:
    """The Mastodon server; none without the library that counts characters."""
    try:
        token = load("tsuzuki.sandbox.mastodon:TOKEN")
    except ImportError:
        warn(invocation, "no Mastodon: install one with pip install 'tsuzuki[sandbox]'")
        return []
    with _port_told(port, "--mastodon-port"):
        server = running.enter_context(_served("tsuzuki.sandbox.mastodon:mastodon", port))
    return [
        Service(
            name="mastodon",
            variables={"SANDBOX_MASTODON_URL": server.url, "SANDBOX_MASTODON_TOKEN": token},
        )
    ]


def _served(application: str, port: int) -> Any:
    """A server of the application that this import string makes."""
    return load("tsuzuki.sandbox.server:StandIn")(load(application)(), port=port)


@contextmanager
def _port_told(port: int, option: str) -> Iterator[None]:
    """A port that is taken is told with the option that chooses another."""
    try:
        yield
    except OSError as problem:
        raise Conflict(
            f"port {port} of 127.0.0.1 cannot be used: {problem.strerror}",
            hint=f"Choose another one with {option}, or 0 for a free one.",
            code="port_in_use",
        ) from problem


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
