"""`tsuzuki run-due`: run everything that is due, then exit. For cron, and for use without a daemon."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.application import apply_file, lines_of_changes, open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.serve.foreground import ProcessSignals, work_options, write_log
from tsuzuki.cli.terminal.output import Column, emit, say

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.due import DueItem
    from tsuzuki.wiring.application import Application

DUE = [
    Column("job"),
    Column("scheduled_for", "DUE"),
    Column("what"),
    Column("ticks", align="right"),
    Column("dry_run", "DRY RUN"),
    Column("state"),
]
ENDED = [Column("state"), Column("runs", align="right")]


@click.command("run-due", cls=Command)
@work_options
@click.option(
    "--dry-run",
    is_flag=True,
    help="List due jobs without running them. Jobs that support a dry run do their work but "
    "send nothing.",
)
@click.pass_obj
def run_due(
    invocation: Invocation,
    /,
    dry_run: bool,
    capacity: int,
    tags: tuple[str, ...],
    log_format: str,
) -> None:
    """Run everything that is due, then exit.

    With --dry-run, due jobs are listed and stay due, except that job types that support a dry run do their
    work and send nothing. A scheduled job of such a type that has never run counts as due.

    Exit code 1 if a run failed, 6 if another process is the leader.

    \b
    tsuzuki run-due --dry-run
    """
    with open_application(invocation, dry_run=_only_lists if dry_run else False) as application:
        if dry_run:
            _dry_run(invocation, application, log_format=log_format)
            return
        apply_file(invocation, application)
        write_log(invocation, log_format=log_format)
        signals = ProcessSignals(application.local_engine.hurry)
        ended = application.local_engine.run_until_idle(
            stop=signals.received, capacity=capacity, tags=tags
        )
    emit(
        invocation,
        [{"state": state, "runs": count} for state, count in ended.items()],
        columns=ENDED,
        empty="Nothing was due.",
    )
    if signals.received.is_set():
        say(invocation, "Interrupted: the remaining runs are still due.")
        raise ExitWith(EXIT_INTERRUPTED)
    if any(state != "SUCCEEDED" for state in ended):
        raise ExitWith(1)


def _only_lists(application: "Application") -> bool:
    """Whether a dry run writes nothing, and so must not create the database either."""
    return not application.dry_runs.are_in_file()


def _dry_run(invocation: Invocation, application: "Application", *, log_format: str) -> None:
    dry_runs = application.dry_runs
    for line in lines_of_changes(dry_runs.apply()):
        say(invocation, line)
    found = dry_runs.find()
    names = dry_runs.runnable(found)
    ended: dict[str, Run] = {}
    if names:
        write_log(invocation, log_format=log_format)
    signals = ProcessSignals(application.local_engine.hurry)
    try:
        for name in names:
            if not signals.received.is_set():
                ended[name] = dry_runs.run(name, stop=signals.received)
    finally:
        rows = [_row(item, ended.get(item.job)) for item in found]
        emit(invocation, rows, columns=DUE, empty="Nothing is due.")
    if signals.received.is_set():
        raise ExitWith(EXIT_INTERRUPTED)
    if any(run.state != "SUCCEEDED" for run in ended.values()):
        raise ExitWith(1)


def _row(item: "DueItem", run: "Run | None") -> dict[str, object]:
    return {**asdict(item), "dry_run": run and run.id, "state": run and run.state}
