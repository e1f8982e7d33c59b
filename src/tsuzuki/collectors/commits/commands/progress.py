"""The progress of a collection on a terminal: a bar, and below it the targets in progress."""

from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tsuzuki.cli.invocation import Invocation
from tsuzuki.collectors.commits.commands.progress_lines import completing_of
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.progress import ProgressMeter
from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.collections import CollectionProgress

SHOWN_MAX = 4


class Bars:
    """Targets done, failed and in all; commits, commits per second, and which targets they are of."""

    def __init__(self, invocation: Invocation) -> None:
        self._bar = Progress(
            TextColumn("targets"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            expand=True,
        )
        self._task: Any = self._bar.add_task("targets", total=None, words="")
        console = Console(stderr=True, no_color=not invocation.color)
        self._live = Live(self._bar, console=console, refresh_per_second=8)
        self._meter = ProgressMeter()
        self._clock = SystemClock()

    def __enter__(self) -> "Bars":
        self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._live.update(self._bar)
        self._live.stop()

    def show(self, progress: "CollectionProgress") -> None:
        summary = progress.summary
        rate = self._meter.update(progress.new_commits, None, self._clock.monotonic())
        self._bar.update(
            self._task,
            completed=summary.success_count + summary.failed_count,
            total=summary.total_targets,
            words=sums_of(progress, rate.rate_per_second),
        )
        lines = [
            Text(line, no_wrap=True, overflow="ellipsis", style="dim")
            for line in current_of(progress)
        ]
        self._live.update(Group(self._bar, *lines))


def sums_of(progress: "CollectionProgress", rate_per_second: float) -> str:
    """What stands beside the bar."""
    failed = progress.summary.failed_count
    return f"{failed} failed · {progress.new_commits} commits · {rate_per_second:.0f}/s"


def current_of(progress: "CollectionProgress") -> list[str]:
    """The targets under way, the first few by name."""
    shown = [
        neutralise(f"  {one.branch_name} of {one.path}: {one.commits} commits")
        for one in progress.in_work[:SHOWN_MAX]
    ]
    more = len(progress.in_work) - SHOWN_MAX
    shown += [f"  and {more} more"] if more > 0 else []
    return [*shown, *(f"  {line}" for line in completing_of(progress)[:SHOWN_MAX])]
