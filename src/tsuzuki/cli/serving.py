"""Running the engine in the foreground: its log, its signals, its end.

The first SIGTERM or ^C lets what runs finish; the second ends it at once.
"""

import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.failures import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import say, warn

if TYPE_CHECKING:
    from tsuzuki.engine.process import Engine

CAPACITY = 10
EXIT_INTERRUPTED = 130


def serving_options(function: Any) -> Any:
    """The options of every command that runs the engine."""
    options = [
        click.option(
            "--capacity",
            type=click.IntRange(1, 10_000),
            default=CAPACITY,
            help="How many runs at once.",
        ),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag this worker has."),
        click.option(
            "--metrics-port",
            type=click.IntRange(1, 65_535),
            metavar="PORT",
            help="Serve Prometheus metrics on 127.0.0.1:PORT.",
        ),
        click.option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            help="How the log on stderr is written.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def log_to_stderr(invocation: Invocation, *, log_format: str) -> None:
    """From now on the engine's log is seen."""
    from tsuzuki.engine.log import JsonLines, TextLines

    level = logging.WARNING if invocation.quiet else logging.INFO
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logger = logging.getLogger("tsuzuki")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if invocation.verbose else level)


@contextmanager
def metrics_served(engine: "Engine", port: int | None) -> Iterator[None]:
    """Metrics on 127.0.0.1 while the block runs, if a port is given."""
    if port is None:
        yield
        return
    from prometheus_client import start_http_server  # noqa: PLC0415 - rarely needed

    server, thread = start_http_server(port, addr="127.0.0.1", registry=engine.metrics.registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5.0)


class Stopping:
    """Whether we were asked to stop, by which signal, and how urgently."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._engine: Engine | None = None
        self.asked = threading.Event()
        self.signal: int | None = None

    def watch(self, engine: "Engine") -> None:
        self._engine = engine
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.asked.is_set():
            if self._engine is not None:
                self._engine.hurry()
            return
        self.signal = number
        self.asked.set()


def serve(
    invocation: Invocation, engine: "Engine", *, metrics_port: int | None, greeting: list[str]
) -> None:
    """Run until asked to stop, or until an operator has drained a process that only works."""
    stopping = Stopping(invocation)
    stopping.watch(engine)
    spare_the_lasting()
    with metrics_served(engine, metrics_port):
        engine.start()
        for line in greeting:
            say(invocation, line)
        while not (stopping.asked.wait(0.2) or engine.outdated):
            if engine.drained.is_set() and not engine.role.lead:
                break
        if stopping.asked.is_set():
            say(invocation, "Stopping: waiting for what runs. Ask again to stop at once.")
        engine.shut_down()
    if engine.outdated is not None:
        raise engine.outdated
    if stopping.signal == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)
    warn_left_behind(invocation, engine)


def spare_the_lasting() -> None:
    """What a process has loaded by now stays for as long as it lives. Looking through it for garbage
    again and again, whenever many runs pass, was a quarter of the engine's own time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def warn_left_behind(invocation: Invocation, engine: "Engine") -> None:
    if engine.worker.running:
        warn(invocation, f"{engine.worker.running} runs could not be stopped; they are fenced off")
