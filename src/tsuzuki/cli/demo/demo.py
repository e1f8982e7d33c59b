"""`tsuzuki demo`: stand-ins, engine and web page in one process, with a sample job of each type.

Each collector defines what its part of the demo starts, writes and shows (`cli.demo.part`).
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.collector_parts import collector_parts
from tsuzuki.cli.commands import Command
from tsuzuki.cli.demo.part import DemoPart, RunningDemo, start_job
from tsuzuki.cli.demo.services import DemoServices
from tsuzuki.cli.demo.workspace import DemoWorkspace
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.serve.foreground import Manner, directions, run_in_foreground
from tsuzuki.cli.serve.web_options import WebOptions, web_served
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.model.access import OwnerMode
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import (
    Conflict,
    TsuzukiError,
    UsageError,
    extra_missing,
)
from tsuzuki.model.worker import DEFAULT_CAPACITY

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

DEFAULT_FOLDER = Path("tsuzuki-demo")
FREE_PORT = "127.0.0.1:0"
DRAIN_SETTING, DRAIN_SECONDS = "drain_timeout_seconds", 1.0
"""^C gives what runs a second to end by itself: the next start goes on with it."""
TRACEBACK_VARIABLE = "TSUZUKI_TRACEBACK"
NIGHTLY_REPORT, THUMBNAILS = "nightly-report", "make-thumbnails"
VISITOR = "visitor.came"


@click.command(cls=Command)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Address of the web page (default: 127.0.0.1:8420, or a free port if that is taken).",
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.pass_obj
def demo(invocation: Invocation, folder: Path | None, listen: str | None) -> None:
    """Start a demo with sample jobs, stand-ins for outside services and the web page.

    FOLDER defaults to ./tsuzuki-demo; it is created on the first start and reused afterwards. No keys
    and no network are needed, and nothing is sent anywhere. ^C stops everything.

    \b
    tsuzuki demo
    tsuzuki demo /tmp/tsuzuki-demo --listen 127.0.0.1:9000
    """
    if invocation.config_file or invocation.database_url:
        raise UsageError(
            "the demo uses its own configuration file and database",
            hint="Leave out --config and --database-url, and name a FOLDER.",
        )
    place = invocation.cwd.absolute() / (folder or DEFAULT_FOLDER)
    clock = SystemClock()
    workspace = DemoWorkspace(place, parts=_usable_parts(invocation), clock=clock)
    workspace.refuse_if_not_a_demo()
    say(invocation, f"Starting in {workspace.folder}. The web page will be ready in a few seconds.")
    workspace.make_folder()
    ports = workspace.record().ports
    with DemoServices(workspace.servers(), ports=ports, clock=clock) as services:
        if not workspace.file.exists():
            workspace.write(services.ports)
        _run(_inside(invocation, workspace), workspace, services.ports, listen)


def _usable_parts(invocation: Invocation) -> list[DemoPart]:
    """The parts whose programs are installed."""
    parts = demo_parts()
    left_out = [name for name, part in parts.items() if not part.is_usable()]
    if left_out:
        missing = sorted({program for name in left_out for program in parts[name].programs})
        warn(
            invocation,
            f"the demo runs without {' or '.join(left_out)}, because {' and '.join(missing)} "
            "is not installed",
        )
    return [part for name, part in parts.items() if name not in left_out]


def demo_parts() -> dict[str, DemoPart]:
    """The part of each collector that has one."""
    from tsuzuki.wiring.collectors import collector_records

    try:
        return collector_parts(lambda collector: collector.demo)
    except ModuleNotFoundError as missing:
        records = collector_records()
        ours = [name for name in records.usable if name not in records.distributions]
        raise extra_missing(
            f"the demo needs the library {missing.name}, which is not installed",
            extra=",".join([*ours, "sandbox", "web"]),
        ) from None


def _inside(invocation: Invocation, workspace: DemoWorkspace) -> Invocation:
    """As if called in the workspace; variables for another workspace are ignored."""
    kept = {TRACEBACK_VARIABLE, *(name for part in workspace.parts for name in part.kept_variables)}
    environ = {
        name: value
        for name, value in invocation.environ.items()
        if name in kept or not name.startswith("TSUZUKI_")
    }
    return replace(invocation, cwd=workspace.folder, environ=environ)


def _run(
    invocation: Invocation, workspace: DemoWorkspace, ports: Mapping[str, int], listen: str | None
) -> None:
    run_in_foreground(
        invocation,
        lead=True,
        work=True,
        apply=True,
        log_format="text",
        database_wait_seconds=0.0,
        serve_beside=partial(_prepared, invocation, workspace, listen=listen),
        manner=Manner(
            greet=partial(_greet, invocation, workspace, ports),
            log_warnings_only=True,
            interrupt_code=0,  # ^C is how a demo ends; `make run` would call any other code an error
        ),
        capacity=DEFAULT_CAPACITY,
        tags=(),
        metrics_host="",
        metrics_port=None,
    )


@contextmanager
def _prepared(
    invocation: Invocation,
    workspace: DemoWorkspace,
    application: "Application",
    *,
    listen: str | None,
) -> Iterator[str]:
    """Start each job once, serve the page, and let the parts continue in a thread, because they may ask slow
    services. The runs are created before the engine plans, so a tick that is due by then finds them."""
    drain = application.settings.get(DRAIN_SETTING)
    if drain.updated_at is None:
        application.settings.set(DRAIN_SETTING, DRAIN_SECONDS)
    parts_jobs = [job for part in workspace.parts for job in part.run_at_start]
    for job in (NIGHTLY_REPORT, THUMBNAILS, *parts_jobs):
        start_job(application, job)
    application.events.emit(VISITOR, {"name": "the first visitor"})
    running = RunningDemo(
        application=application, folder=workspace.folder, stopping=threading.Event()
    )
    continued = threading.Thread(
        target=_after_start, args=(invocation, workspace, running), name="demo-after-start"
    )
    with _page_served(invocation, application, listen=listen) as url:
        continued.start()
        try:
            yield url
        finally:
            running.stopping.set()
            continued.join()


def _after_start(invocation: Invocation, workspace: DemoWorkspace, running: RunningDemo) -> None:
    for part in workspace.parts:
        try:
            part.after_start(running)
        except TsuzukiError as problem:
            warn(invocation, f"the demo is incomplete: {problem.message}")


@contextmanager
def _page_served(
    invocation: Invocation, application: "Application", *, listen: str | None
) -> Iterator[str]:
    """At the usual address or, if that is taken and none was asked for, on a free port."""
    options = WebOptions(listen=listen, allowed_hosts=(), trusted_proxies=(), setup=False)
    with ExitStack() as running:
        try:
            url = running.enter_context(web_served(invocation, application, options))
        except Conflict:
            if listen is not None:
                raise
            options = replace(options, listen=FREE_PORT)
            url = running.enter_context(web_served(invocation, application, options))
        yield url


def _greet(
    invocation: Invocation,
    workspace: DemoWorkspace,
    ports: Mapping[str, int],
    application: "Application",
    url: str | None,
) -> None:
    """Say where to look."""
    started = {"url": url, "folder": str(workspace.folder), "ports": dict(sorted(ports.items()))}
    emit(invocation, started, columns=[Column("url", "WEB PAGE"), Column("folder")])
    say(invocation, "")
    _tell_pages(invocation, workspace, str(url))
    _tell_commands(invocation, workspace, ports)
    if application.owner_mode() is OwnerMode.OPEN:
        say(
            invocation,
            "The page is open to every account on this machine, and whoever opens it can run "
            "commands as you (web.owner_mode in tsuzuki.yaml).",
        )
    say(
        invocation,
        "Press ^C to stop everything. The folder is kept, and the next start continues with it.",
    )


def _tell_pages(invocation: Invocation, workspace: DemoWorkspace, url: str) -> None:
    pages = {path: meaning for part in workspace.parts for path, meaning in part.look_at.items()}
    pages["/failures"] = "the failed attempt and its successful retry"
    pages[f"/jobs/{THUMBNAILS}"] = "a run in progress, and the ticks skipped in the meantime"
    width = len(url) + max(map(len, pages))
    say(invocation, "Look at:")
    for path, meaning in pages.items():
        say(invocation, f"  {url + path:<{width}}  {meaning}")


def _tell_commands(
    invocation: Invocation, workspace: DemoWorkspace, ports: Mapping[str, int]
) -> None:
    commands = {
        "tsuzuki run ls": "the same in the terminal",
        f"tsuzuki job run {NIGHTLY_REPORT} --watch": "the first attempt fails; the output names the retry",
        f'tsuzuki event emit {VISITOR} --payload \'{{"name": "you"}}\'': "emit an event that starts a job",
    }
    for part in workspace.parts:
        commands |= {command.format(**ports): told for command, told in part.commands.items()}
    say(invocation, f"Try in another terminal, after {directions(invocation)}:")
    for command, meaning in commands.items():
        say(invocation, f"  # {meaning}")
        say(invocation, f"  {command}")
