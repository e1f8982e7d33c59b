"""The progress of a collection without a terminal: a line every few seconds."""

from typing import TYPE_CHECKING

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import say
from tsuzuki.cli.terminal.progress import ProgressInterval
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.progress import ProgressMeter
from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.collections import CollectionProgress


class ProgressLines:
    """Targets done, failed and in all, commits and commits per second. A short collection shows none."""

    def __init__(self, invocation: Invocation, *, clock: Clock | None = None) -> None:
        self._invocation = invocation
        self._clock = clock or SystemClock()
        self._interval = ProgressInterval(self._clock)
        self._meter = ProgressMeter()

    def __enter__(self) -> "ProgressLines":
        return self

    def __exit__(self, *_exc: object) -> None:
        """The lines stay."""

    def show(self, progress: "CollectionProgress") -> None:
        rate = self._meter.update(progress.new_commits, None, self._clock.monotonic())
        if not self._interval.is_over():
            return
        summary = progress.summary
        done = summary.success_count + summary.failed_count
        say(
            self._invocation,
            f"{done} of {summary.total_targets} targets, {summary.failed_count} failed; "
            f"{progress.new_commits} new commits, {rate.rate_per_second:.0f} per second",
        )
        for line in completing_of(progress):
            say(self._invocation, line)


def completing_of(progress: "CollectionProgress") -> list[str]:
    """The projects whose earlier commits are being completed."""
    return [
        neutralise(
            f"{one.path}: parents and paths of {one.complete_commits} of {one.commits} commits"
        )
        for one in progress.completing
    ]
