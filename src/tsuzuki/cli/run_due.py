"""`tsuzuki run-due`: do everything that is due, then end. For cron and for people without a daemon."""

import click

from tsuzuki.cli.application import apply_file, open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import EXIT_INTERRUPTED, ExitWith
from tsuzuki.cli.foreground import ProcessSignals, work_options, write_log
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column, emit, say

DUE = [
    Column("job"),
    Column("scheduled_for", "DUE"),
    Column("what"),
    Column("ticks", align="right"),
]
ENDED = [Column("state"), Column("runs", align="right")]


@click.command("run-due", cls=Command)
@work_options
@click.option("--dry-run", is_flag=True, help="Say what is due, and do nothing.")
@click.pass_obj
def run_due(
    invocation: Invocation,
    /,
    dry_run: bool,
    capacity: int,
    tags: tuple[str, ...],
    log_format: str,
) -> None:
    """Run everything that is due, then end.

    Exit code 1 if a run did not succeed, 6 if another process leads already.

    \b
    tsuzuki run-due --dry-run
    """
    with open_application(invocation, dry_run=dry_run) as application:
        if dry_run:
            emit(invocation, application.due.find(), columns=DUE, empty="Nothing is due.")
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
        say(invocation, "Interrupted: what was left is still due.")
        raise ExitWith(EXIT_INTERRUPTED)
    if any(state != "SUCCEEDED" for state in ended):
        raise ExitWith(1)
