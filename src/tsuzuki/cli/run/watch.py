"""Watch a run until it ends: with a progress bar on a terminal, elsewhere with a line per state change and a
progress line every few seconds.

The exit code is the run's: 0 if it succeeded, otherwise 1.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.run.states import shown_state
from tsuzuki.cli.terminal.output import Column, is_terminal, say
from tsuzuki.cli.terminal.progress import LINE_SECONDS_MAX, ProgressInterval
from tsuzuki.cli.terminal.values import table_text
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.states import RunState
from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.explain import StatusReason
    from tsuzuki.wiring.application import Application

NOT_SERVED = ("no_leader", "no_worker")
"""Causes for which a run waits until a person starts something."""


def reason_columns(reasons: "Sequence[StatusReason]") -> list[Column]:
    """Why a run is not running. Without a single hint there is no column of them."""
    columns = [Column("cause"), Column("sentence")]
    return [*columns, Column("hint")] if any(reason.hint for reason in reasons) else columns


def watch_run(
    invocation: Invocation,
    application: "Application",
    run_id: int,
    *,
    timeout: float | None,
    with_log: bool = False,
    follows_retries: bool = False,
) -> "Run":
    """Show how a run goes, `with_log` what it writes too, and return it when it has ended. If it does not
    start, say why. If it fails and will be retried, say when; if the watch `follows_retries`, go on with the retry."""
    watch = _Watch(application, run_id, with_log=with_log)
    wait = partial(
        application.runs.wait,
        run_id,
        timeout_seconds=timeout,
        follows_retries=follows_retries,
        on_late_start=lambda: _say_reason(invocation, watch.reason()),
    )
    if invocation.quiet or invocation.output.is_json:
        return wait()
    if not is_terminal(sys.stderr):
        lines = StateLines(invocation)
        ended = watch.ended(wait, lines.show, partial(say, invocation), lines.wait)
    else:
        with ProgressBar(invocation) as bar:
            ended = watch.ended(wait, bar.show, bar.echo)
        say(invocation, sentence(ended))
    if not follows_retries:
        _say_when_retried(invocation, application, ended)
    return ended


class _Watch:
    """The attempts of a run as they are shown: the log of one, then a line that announces the next."""

    def __init__(self, application: "Application", run_id: int, *, with_log: bool) -> None:
        self._application = application
        self._run_id = run_id
        self._with_log = with_log

    def reason(self) -> "StatusReason":
        """Why the attempt that is shown is where it is."""
        return self._application.runs.explain(self._run_id).reasons[0]

    def ended(
        self,
        wait: "Callable[..., Run]",
        show: "Callable[[Run], None]",
        echo: Callable[[str], None],
        on_look: Callable[[], None] = lambda: None,
    ) -> "Run":
        log = _LogFollower(self._application, self._run_id, echo if self._with_log else None)

        def look() -> None:
            log.show()
            on_look()

        def change(run: "Run") -> None:
            if run.id != self._run_id:
                self._run_id = run.id
                log.show()
                echo(_retrying(run))
                log.turn_to(run.id)
            show(run)

        return wait(on_change=change, on_look=look)


def say_if_not_served(invocation: Invocation, application: "Application", run_id: int) -> None:
    """Tell a person who started a run if nothing is there to run it."""
    if not is_terminal(sys.stderr):
        return
    with suppress(TsuzukiError):  # the run is confirmed, and that was told
        reason = application.runs.explain(run_id).reasons[0]
        if reason.cause in NOT_SERVED:
            _say_reason(invocation, reason)


def _say_reason(invocation: Invocation, reason: "StatusReason") -> None:
    say(invocation, reason.sentence)
    if reason.hint:
        say(invocation, reason.hint)


@contextmanager
def telling_that_it_goes_on(invocation: Invocation, run_id: int) -> Iterator[None]:
    """After ^C only the watching has ended: say so, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say_that_it_goes_on(invocation, run_id)
        raise


def say_that_it_goes_on(invocation: Invocation, run_id: int) -> None:
    say(invocation, f"Run {run_id} continues. Watch it again with: tsuzuki run watch {run_id}")
    say(invocation, f"Cancel it with: tsuzuki run cancel {run_id}")


def _say_when_retried(invocation: Invocation, application: "Application", ended: "Run") -> None:
    retry_id = application.runs.get(ended.id).retried_as
    if retry_id is None:
        return
    retry = application.runs.get(retry_id).run
    if retry.state.is_final:
        say(invocation, f"Its retry, run {retry_id}, is {retry.state}.")
        return
    say(invocation, _retrying(retry))
    say(invocation, f"Watch the retry with: tsuzuki run watch {retry_id}")


def _retrying(retry: "Run") -> str:
    if retry.started_at is not None:
        return f"Retrying as run {retry.id}."
    return f"Retrying at {table_text(retry.scheduled_for)} as run {retry.id}."


class _LogFollower:
    """Echoes the lines of a run that were not echoed yet; none without `echo`."""

    def __init__(
        self, application: "Application", run_id: int, echo: Callable[[str], None] | None
    ) -> None:
        self._logs = application.logs
        self._run_id = run_id
        self._echo = echo
        self._seq = 0

    def turn_to(self, run_id: int) -> None:
        """From now on echo the lines of another run."""
        self._run_id, self._seq = run_id, 0
        self.show()

    def show(self) -> None:
        echo = self._echo
        while echo and (lines := self._logs.read(self._run_id, after_seq=self._seq)):
            self._seq = lines[-1].seq
            for line in lines:
                echo(line.body)


def exit_with_result(run: "Run") -> None:
    if run.state is not RunState.SUCCEEDED:
        raise ExitWith(1)


class StateLines:
    """One line whenever the state has changed, and every few seconds one with the progress. Without progress it is
    told how long it has been in that state, more and more rarely."""

    def __init__(self, invocation: Invocation, *, clock: Clock | None = None) -> None:
        self._invocation = invocation
        self._told: Run | None = None
        self._clock = clock or SystemClock()
        self._since = self._clock.monotonic()
        self._interval = ProgressInterval(self._clock)
        self._next_after_seconds = 0.0

    def show(self, run: "Run") -> None:
        if self._told is None or (run.id, run.state) != (self._told.id, self._told.state):
            self._since = self._clock.monotonic()
            self._next_after_seconds = 0.0
            say(self._invocation, sentence(run))
        self._told = run
        self.wait()

    def wait(self) -> None:
        """Called while nothing has changed."""
        run = self._told
        if run is None or run.state.is_final or not self._interval.is_over():
            return
        if run.progress_processed:
            total = f" of {run.progress_total}" if run.progress_total is not None else ""
            say(self._invocation, f"Run {run.id}: {run.progress_processed}{total} done")
            return
        seconds = self._clock.monotonic() - self._since
        if seconds >= self._next_after_seconds:
            self._next_after_seconds = min(1.5 * seconds, seconds + LINE_SECONDS_MAX)
            say(self._invocation, f"Run {run.id} is {run.state} for {seconds:.0f} s")


class ProgressBar:
    """Done, total, rate and remaining time, drawn by rich."""

    def __init__(self, invocation: Invocation) -> None:
        from rich.console import Console  # noqa: PLC0415 - rich is slow to load; only a terminal that watches pays
        from rich.progress import (  # noqa: PLC0415 - rich is slow to load; only a terminal that watches pays
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True, no_color=not invocation.color)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._bar = self._progress.add_task("waiting", total=None, count="")

    def __enter__(self) -> "ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._progress.stop()

    def echo(self, text: str) -> None:
        """A line above the bar."""
        self._progress.console.print(
            neutralise(text), markup=False, highlight=False, soft_wrap=True
        )

    def show(self, run: "Run") -> None:
        self._progress.update(
            self._bar,
            description=f"run {run.id} {run.state.lower()}",
            completed=run.progress_processed,
            total=run.progress_total,
            count=_count(run),
            visible=not run.state.is_final or bool(run.progress_processed),
        )


def _count(run: "Run") -> str:
    """How much is done; empty for a run that does not say."""
    if run.progress_total is None:
        return f"{run.progress_processed} done" if run.progress_processed else ""
    return f"{run.progress_processed}/{run.progress_total}"


def sentence(run: "Run") -> str:
    """Where a run is, in a line."""
    why = f" ({run.reason})" if run.reason else ""
    said = f": {run.error}" if run.error else ""
    return f"Run {run.id} of {run.job_name} is {shown_state(run)}{why}{said}"
