"""Run the engine in the foreground: its options, log, signals and shutdown.

After the first SIGTERM or ^C, runs in progress finish; after the second, the process stops immediately.
"""

import logging
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import lines_of_changes, open_existing, upgrade_tables
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import say, warn
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.worker import DEFAULT_CAPACITY

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application

log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Format of the log on stderr.",
)


def work_options(function: Any) -> Any:
    """The options of every command that executes runs."""
    options = [
        click.option(
            "--capacity",
            type=click.IntRange(1, 10_000),
            default=DEFAULT_CAPACITY,
            help="Maximum number of concurrent runs.",
        ),
        click.option(
            "--tag",
            "tags",
            multiple=True,
            metavar="TAG",
            help="Tag of this worker. Can be repeated.",
        ),
        log_format_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


def engine_options(function: Any) -> Any:
    """The options of every command that runs the engine until it is stopped."""
    options = [
        work_options,
        click.option(
            "--metrics-port",
            type=click.IntRange(1, 65_535),
            metavar="PORT",
            help="Serve Prometheus metrics on 127.0.0.1:PORT.",
        ),
        click.option(
            "--metrics-host",
            default="127.0.0.1",
            metavar="ADDRESS",
            help="Address for metrics. Any program that can reach it can read them.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def database_wait_option(function: Any) -> Any:
    """For commands that run until they are stopped, and may be started before their database is."""
    return click.option(
        "--database-wait",
        "database_wait_seconds",
        type=click.FloatRange(0),
        default=60.0,
        metavar="SECONDS",
        help="Seconds to wait at startup for PostgreSQL to become available, or for free disk "
        "space.",
    )(function)


def write_log(invocation: Invocation, *, log_format: str = "text", quiet: bool = False) -> None:
    """From now on the engine's log is on stderr; `quiet` leaves warnings only."""
    from tsuzuki.services.local_engine import log_to_stderr

    level = logging.WARNING if quiet or invocation.quiet else logging.INFO
    log_to_stderr(
        level=logging.DEBUG if invocation.verbose else level, as_json=log_format == "json"
    )


class ProcessSignals:
    """SIGTERM and SIGINT: the first sets `received`, for a second one `on_second` is called."""

    def __init__(self, on_second: Callable[[], None] = lambda: None) -> None:
        self._on_second = on_second
        self.received = threading.Event()
        self.number: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.received.is_set():
            self._on_second()
            return
        self.number = number
        self.received.set()


def directions(invocation: Invocation) -> str:
    """What makes `tsuzuki` work on this workspace in another terminal."""
    program = _program()
    folder = f"cd {shlex.quote(str(invocation.cwd.absolute()))}"
    if "/" not in program:
        return folder
    return f"{folder} && export PATH={shlex.quote(str(Path(program).parent))}:$PATH"


def _program() -> str:
    """Its name, or its path where that is not what the name would start."""
    started_as = sys.argv[0]
    is_elsewhere = "/" in started_as and shutil.which("tsuzuki") != started_as
    return str(Path(started_as).absolute()) if is_elsewhere else "tsuzuki"


def _line_to_type(invocation: Invocation) -> str:
    """A command that works in every terminal, with any folder and PATH."""
    words = [_program()]
    if invocation.config_file:
        words += ["--config", str(invocation.cwd.absolute() / invocation.config_file)]
    folder = shlex.quote(str(invocation.cwd.absolute()))
    return f"cd {folder} && {shlex.join([*words, 'run', 'ls'])}"


@contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """While nothing runs yet, SIGINT and SIGTERM end the process at once, even one that has no default for them
    (pid 1). The exception that says so can be lost in a destructor; the event, and the end of the block, cannot."""
    stop, received = threading.Event(), 0

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received = number
        stop.set()
        raise _end_by(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    except Exception:
        if not received:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise _end_by(received)


def _end_by(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else ExitWith(0)


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How a process in the foreground talks."""

    greet: Callable[[Any, str | None], None] | None = None
    """Called with the application and the address in place of the usual words when all has started."""
    log_warnings_only: bool = False
    interrupt_code: int = EXIT_INTERRUPTED
    """The exit code after ^C."""


class _Announcements:
    """What is told of the start and the stop: to people on stderr, and to the service manager."""

    def __init__(self, invocation: Invocation, *, log_format: str, manner: Manner) -> None:
        from tsuzuki.services.service_manager import ServiceManager

        self._invocation = invocation
        self._is_for_people = log_format != "json"
        self._manner = manner
        self.manager = ServiceManager(invocation.environ, pid=os.getpid())

    def talk(self, text: str) -> None:
        # A log of JSON lines is for a machine, which is told the same by the engine's own events.
        if self._is_for_people:
            say(self._invocation, text)

    def started(self, application: "Application", url: str | None, *, leads: bool) -> None:
        database = application.configuration.database_url
        if self._manner.greet is not None:
            self._manner.greet(application, url)
        else:
            line = _line_to_type(self._invocation)
            self.talk(f"Running on {database}. In another terminal: {line}")
            if url is not None:
                self.talk(f"The web page is at {url}; the API is documented at {url}/docs.")
            self.talk("Stop with ^C.")
            if not leads:
                self._talk_of_leader(application)
        self.manager.ready(f"Running on {database}")

    def _talk_of_leader(self, application: "Application") -> None:
        with suppress(TsuzukiError):  # a database out of reach is told by the engine
            if not application.liveness.has_live_leader():
                self.talk(
                    "There is no leader yet, so nothing is assigned. Start one with: tsuzuki up"
                )

    def stopping(self) -> None:
        self.talk("Stopping: waiting for runs in progress. Press ^C again to stop immediately.")
        self.manager.stopping("Waiting for runs in progress")

    def told_alive(
        self, application: "Application", url: str | None
    ) -> AbstractContextManager[None]:
        """While the block runs, the service manager is told whether engine and server are alive."""
        from tsuzuki.services.service_manager import answers

        engine = application.local_engine
        return self.manager.told_alive(
            lambda: engine.is_alive and (url is None or answers(url)),
        )


def run_in_foreground(
    invocation: Invocation,
    *,
    lead: bool,
    work: bool,
    apply: bool,
    log_format: str,
    database_wait_seconds: float,
    serve_beside: Callable[[Any], AbstractContextManager[str | None]] | None = None,
    manner: Manner = Manner(),  # noqa: B008 -- frozen
    **options: Any,
) -> None:
    """`tsuzuki up`, `tsuzuki worker` and `tsuzuki demo`; `apply` brings the jobs of the file into the database
    first, and again whenever the file changes. `serve_beside` serves the application while the engine runs, and
    gives the address."""

    def bring_up_to_date() -> None:
        upgrade_tables(invocation, application)
        if apply:
            for line in lines_of_changes(application.jobs.apply()):
                announcements.talk(line)

    def start(engine_start: Callable[[], None]) -> None:
        once_reachable(engine_start, stop=signals.received)
        announcements.started(application, url, leads=lead)

    host, port = options.pop("metrics_host"), options.pop("metrics_port")
    metrics_address = (host, port) if port else None
    announcements = _Announcements(invocation, log_format=log_format, manner=manner)
    write_log(invocation, log_format=log_format, quiet=manner.log_warnings_only)
    with open_existing(invocation) as application:
        once_reachable = partial(
            application.maintenance.retry_while_unreachable, seconds=database_wait_seconds
        )
        with ended_by_signals() as stop:
            once_reachable(bring_up_to_date, stop=stop)
        signals = ProcessSignals(application.local_engine.hurry)
        with (
            application.job_file.watched() if apply else nullcontext(),
            serve_beside(application) if serve_beside else nullcontext() as url,
            announcements.told_alive(application, url),
        ):
            left_running = application.local_engine.serve(
                stop=signals.received,
                lead=lead,
                work=work,
                metrics_address=metrics_address,
                start_by=start,
                on_stopping=announcements.stopping,
                **options,
            )
    if signals.number == signal.SIGINT:
        raise ExitWith(manner.interrupt_code)
    if left_running:
        warn(
            invocation, f"{left_running} runs could not be stopped; fencing keeps them from writing"
        )
