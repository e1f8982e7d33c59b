"""The progress of a build: a bar on a terminal, elsewhere a line every few seconds."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import say
from tsuzuki.cli.terminal.progress import ProgressInterval
from tsuzuki.model.clock import SystemClock

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.service.builds import BuildJob


class BuildBar:
    """Files done and in all, files per second, and the remaining time."""

    def __init__(self, invocation: Invocation, *, is_transient: bool = False) -> None:
        self._bar = Progress(
            TextColumn("files"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True, no_color=not invocation.color),
            expand=True,
            transient=is_transient,
        )
        self._task: Any = self._bar.add_task("files", total=None, rate="")

    def __enter__(self) -> "BuildBar":
        self._bar.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._bar.stop()

    def show(self, job: "BuildJob") -> None:
        progress = job.progress
        self._bar.update(
            self._task,
            completed=progress.processed,
            total=progress.total or None,
            rate=f"{progress.rate:.0f}/s",
        )


class BuildLines:
    """The same as text. A short build shows none."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._interval = ProgressInterval(SystemClock())

    def __enter__(self) -> "BuildLines":
        return self

    def __exit__(self, *_exc: object) -> None:
        """The lines stay."""

    def show(self, job: "BuildJob") -> None:
        progress = job.progress
        if self._interval.is_over():
            say(
                self._invocation,
                f"{progress.processed} of {progress.total} files, {progress.rate:.0f} per second",
            )
