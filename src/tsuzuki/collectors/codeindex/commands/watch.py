"""`tsuzuki index watch`: keep an index up to date until it is stopped."""

import queue
import signal
import sys
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.serve.foreground import ProcessSignals
from tsuzuki.cli.terminal.output import Column, emit, is_terminal, say, warn, write
from tsuzuki.collectors.codeindex.commands.service import builds_service, extra_required
from tsuzuki.model.errors import UsageError

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.commands.progress import BuildBar
    from tsuzuki.collectors.codeindex.service.watcher import BuildJob, WatchEvent

LOOK_SECONDS = 0.2
CLOSE_SECONDS = 0.7
BAR_FILES_MIN = 100
ENDED = [
    Column("at"),
    Column("id"),
    Column("status"),
    Column("updatedFiles"),
    Column("removedFiles"),
    Column("totalIndexedSymbols"),
]


@click.command(cls=Command)
@click.argument("path", required=False)
@click.pass_obj
def watch(invocation: Invocation, path: str | None) -> None:
    """Keep the index of a tree up to date until ^C.

    The first build starts immediately. After that, only changed files are parsed, shortly after they are saved.
    If another process already watches the tree, this one waits and takes over when that one ends. --output jsonl
    prints a line for each event, plain one for each build.

    \b
    tsuzuki index watch
    tsuzuki index watch ~/src/django --output jsonl
    """
    if invocation.output is OutputFormat.JSON:
        raise UsageError(
            "a watch never ends, so it cannot be one JSON document",
            hint="Use --output jsonl for one line per event.",
            code="endless_output",
        )
    builds = builds_service(invocation)
    with extra_required():
        from tsuzuki.collectors.codeindex.service.watcher import Watcher, WatchState
    root = builds.root(path, cwd=invocation.cwd)
    events: queue.SimpleQueue[WatchEvent] = queue.SimpleQueue()
    signals = ProcessSignals()
    watcher = Watcher(root, builds=builds, on_event=events.put).start()
    view = _View(invocation)
    try:
        while not signals.received.is_set():
            try:
                event = events.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            view.show(event)
            if event.state is WatchState.CLOSED:
                break
    finally:
        view.close()
        watcher.close(CLOSE_SECONDS)
    if signals.number == signal.SIGINT:
        raise ExitWith(EXIT_INTERRUPTED)


class _View:
    """Each build that ended on stdout, everything else on stderr; a long build has a bar on a terminal."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._has_bar = not invocation.quiet and is_terminal(sys.stderr)
        self._bar: BuildBar | None = None
        self._state = ""

    def show(self, event: "WatchEvent") -> None:
        if self._invocation.output is OutputFormat.JSONL:
            emit(self._invocation, event.as_json())
            return
        if event.job is not None and event.job.status == "running":
            self._show_progress(event.job)
        else:
            self.close()
        self._tell(event)
        if event.job is not None and event.job.status != "running":
            self._show_end(event.at, event.job)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__()
            self._bar = None

    def _show_progress(self, job: "BuildJob") -> None:
        progress = job.progress
        is_short = progress.total - progress.processed < BAR_FILES_MIN
        if not self._has_bar or (self._bar is None and is_short):
            return
        if self._bar is None:
            from tsuzuki.collectors.codeindex.commands.progress import BuildBar

            self._bar = BuildBar(self._invocation, is_transient=True).__enter__()
        self._bar.show(job)

    def _tell(self, event: "WatchEvent") -> None:
        """What the watcher does, when that is news. A build is none."""
        state = event.state.value
        # A watcher that waits is told of again when another process has the tree.
        is_news, root = state == "waiting" or state != self._state, event.root
        if state == "building":
            if event.note:
                warn(self._invocation, event.note)
            return
        self._state = state
        if not is_news:
            return
        if state == "watching":
            say(self._invocation, f"Watching {root}. Press ^C to stop.")
        elif state == "waiting":
            say(self._invocation, f"Waiting to watch {root}: {event.note}.")
        elif state == "polling":
            warn(self._invocation, f"{root} is scanned every few seconds: {event.note}")
        elif state == "root_gone":
            warn(self._invocation, f"waiting for {root}: {event.note}")
        elif state == "retrying":
            warn(self._invocation, f"retrying in a moment: {event.note}")

    def _show_end(self, at: str, job: "BuildJob") -> None:
        if self._invocation.output is OutputFormat.PLAIN:
            result = job.result.as_json() if job.result else {}
            row = {column.key: result.get(column.key) for column in ENDED}
            emit(
                self._invocation,
                [row | {"at": at, "id": job.id, "status": job.status}],
                columns=ENDED,
            )
        elif job.result is not None:
            write(
                f"{at}  {job.result.updated_files} updated, {job.result.removed_files} removed,"
                f" {job.result.total_indexed_symbols} symbols  {job.id}"
            )
