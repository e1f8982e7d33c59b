"""`tsuzuki demo`: sandbox, engine and web page in one process, with a job of each kind that has something to do."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.collector_services import commits_service
from tsuzuki.cli.commands import Command
from tsuzuki.cli.demo_workspace import DemoWorkspace, require_git
from tsuzuki.cli.foreground import Manner, directions, run_in_foreground
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column, emit, say, warn
from tsuzuki.cli.web_options import WebOptions, web_served
from tsuzuki.model.access import OwnerMode
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import Conflict, NotFound, TsuzukiError, UsageError, extra_missing
from tsuzuki.model.import_string import load
from tsuzuki.model.worker import DEFAULT_CAPACITY

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

DEFAULT_FOLDER = Path("tsuzuki-demo")
FREE_PORT = "127.0.0.1:0"
DRAIN_SETTING, DRAIN_SECONDS = "drain_timeout_seconds", 1.0
"""^C gives what runs a second to end by itself: the next start goes on with it."""
KEPT_VARIABLES = ("TSUZUKI_CODEINDEX_FOLDER", "TSUZUKI_CODEINDEX_CONFIG", "TSUZUKI_TRACEBACK")
COMMITS, CODE_INDEX = "commits", "code-index"
EXTRAS = "books,codeindex,commits,feeds,sandbox,web"
PROJECTS = ("demo/atlas", "demo/harbour")
FOLLOWED = Path(".tsuzuki") / "followed"
"""There once all projects are followed: a first start may be interrupted."""
RUN_AT_START = ("nightly-report", "news-bot", "new-books", CODE_INDEX)
VISITOR = "visitor.came"


@click.command(cls=Command)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where the web page is served; 127.0.0.1:8420 unless said, and a free port if that is taken.",
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.pass_obj
def demo(invocation: Invocation, folder: Path | None, listen: str | None) -> None:
    """Start a demo: stand-ins for outside services, an engine and the web page.

    FOLDER is ./tsuzuki-demo unless said, and is made at the first start; the next one goes on with it. No
    key and no network is needed, and nothing is sent anywhere. ^C stops all of it.

    \b
    tsuzuki demo
    tsuzuki demo /tmp/tsuzuki-demo --listen 127.0.0.1:9000
    """
    if invocation.config_file or invocation.database_url:
        raise UsageError(
            "the demo has a file and a database of its own",
            hint="Leave out --config and --database-url, and name a FOLDER.",
        )
    require_git()
    place = invocation.cwd.absolute() / (folder or DEFAULT_FOLDER)
    workspace = DemoWorkspace(place, now=SystemClock().now())
    workspace.refuse_if_not_a_demo()
    say(invocation, f"Starting in {workspace.folder}: the page is there in a few seconds.")
    with _services(workspace) as services:
        if not workspace.file.exists():
            workspace.write(services.ports, root=workspace.source_tree())
        _run(_inside(invocation, workspace), services, listen)


@contextmanager
def _services(workspace: DemoWorkspace) -> Iterator[Any]:
    """The stand-ins while the block runs."""
    workspace.make_folder()
    package = "tsuzuki.sandbox.demo.services"
    try:
        record = workspace.record()
        services = load(f"{package}:DemoServices")(
            workspace.repositories, since=record.since, ports=record.ports
        )
    except ModuleNotFoundError as missing:
        raise extra_missing(
            f"the demo needs the library {missing.name}, which is not installed", extra=EXTRAS
        ) from None
    with ExitStack() as running:
        try:
            running.enter_context(services)
        except load(f"{package}:PortTaken") as taken:
            raise Conflict(
                f"port {taken.port} of 127.0.0.1, which this demo has for {taken.service}, is in use: {taken.reason}",
                hint="If this demo runs in another terminal, stop it there. Else name another folder: "
                "tsuzuki demo FOLDER",
                code="port_in_use",
            ) from None
        yield services


def _inside(invocation: Invocation, workspace: DemoWorkspace) -> Invocation:
    """As if called in the workspace; what the environment says of another one does not count."""
    environ = {
        name: value
        for name, value in invocation.environ.items()
        if name in KEPT_VARIABLES or not name.startswith("TSUZUKI_")
    }
    return replace(invocation, cwd=workspace.folder, environ=environ)


def _run(invocation: Invocation, services: Any, listen: str | None) -> None:
    run_in_foreground(
        invocation,
        lead=True,
        work=True,
        apply=True,
        log_format="text",
        database_wait_seconds=0.0,
        serve_beside=partial(_prepared, invocation, listen=listen),
        manner=Manner(
            greet=partial(_greet, invocation, services),
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
    invocation: Invocation, application: "Application", *, listen: str | None
) -> Iterator[str]:
    """The page, and in a thread of its own the first start of the commits: GitLab is asked for its projects, and ^C
    does not wait for that."""
    drain = application.settings.get(DRAIN_SETTING)
    if drain.updated_at is None:
        application.settings.set(DRAIN_SETTING, DRAIN_SECONDS)
    stopping = threading.Event()
    follow = threading.Thread(
        target=_follow_projects, args=(invocation, application, stopping), name="demo-projects"
    )
    with _page_served(invocation, application, listen=listen) as url:
        follow.start()
        try:
            yield url
        finally:
            stopping.set()
            follow.join()


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
    invocation: Invocation, services: Any, application: "Application", url: str | None
) -> None:
    """Start each job once, and say where to look."""
    for name in RUN_AT_START:
        _start(application, name)
    application.events.emit(VISITOR, {"name": "the first visitor"})
    _tell(invocation, services, str(url), is_open=application.owner_mode() is OwnerMode.OPEN)


def _start(application: "Application", name: str) -> None:
    from tsuzuki.services.runs import Request

    with suppress(NotFound):  # taken out of the file
        application.runs.start(Request(job=name))


def _follow_projects(
    invocation: Invocation, application: "Application", stopping: threading.Event
) -> None:
    """Once: a target that was removed later stays removed. Then the commits are collected."""
    commits = commits_service(application).commits
    done = invocation.cwd / FOLLOWED
    try:
        if not done.exists():
            root = application.jobs.get(CODE_INDEX).spec.options["roots"][0]
            commits.sync_projects()
            for project in (root, *PROJECTS):
                if stopping.is_set():
                    return
                commits.add_target(project, None, base=invocation.cwd)
            done.touch()
        _start(application, COMMITS)
    except TsuzukiError as problem:
        warn(invocation, f"the commits of the demo are not followed: {problem.message}")


def _tell(invocation: Invocation, services: Any, url: str, *, is_open: bool) -> None:
    ports = {name: services.ports[name] for name in sorted(services.ports)}
    started = {"url": url, "folder": str(invocation.cwd), "ports": ports}
    emit(invocation, started, columns=[Column("url", "WEB PAGE"), Column("folder")])
    articles = f"http://127.0.0.1:{ports['feeds']}/_sandbox/articles"
    article = """'{"feed": "/en/feed.xml", "title": "My news", "text": "It rained. It stopped."}'"""
    tries = (
        (f"{url}/commits", "who committed when"),
        (f"{url}/books", "a search that used up its quota, and when it goes on"),
        (f"{url}/feeds", "what was posted, and what waits for your approval"),
        (f"{url}/index", "search the source code"),
        (f"{url}/failures", "the attempt that failed; its retry succeeded"),
    )
    commands = (
        ("tsuzuki run ls", "the same at the command line"),
        (
            "tsuzuki job run nightly-report --watch",
            "the first attempt fails; it says how to watch the retry, which succeeds",
        ),
        (f'tsuzuki event emit {VISITOR} --payload \'{{"name": "you"}}\'', "starts a job"),
        (f"curl -d {article} {articles}", "posted within a minute"),
    )
    say(invocation, "")
    say(invocation, "Look at:")
    for address, meaning in tries:
        say(invocation, f"  {address:<{max(len(one) for one, _ in tries)}}  {meaning}")
    say(invocation, f"Try in another terminal, after {directions(invocation)}:")
    for command, meaning in commands:
        say(invocation, f"  # {meaning}")
        say(invocation, f"  {command}")
    if is_open:
        say(
            invocation,
            "The page is open to every account of this machine, which can also run commands as you"
            " (web.owner_mode in tsuzuki.yaml).",
        )
    say(invocation, "^C stops all of it. The folder stays, and the next start goes on.")
