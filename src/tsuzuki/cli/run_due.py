"""`tsuzuki run-due`: do everything that is due, then end. For cron and for people without a daemon."""

from typing import Any

import click

from tsuzuki.cli.application import application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.failures import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import Column, emit, say
from tsuzuki.cli.serving import Stopping, log_to_stderr, serving_options

DUE = [
    Column("job"),
    Column("scheduled_for", "DUE"),
    Column("what"),
    Column("ticks", align="right"),
]
ENDED = [Column("state"), Column("runs", align="right")]


@click.command("run-due", cls=Command)
@serving_options
@click.option("--dry-run", is_flag=True, help="Say what is due, and do nothing.")
@click.pass_obj
def run_due(
    invocation: Invocation,
    /,
    dry_run: bool,
    capacity: int,
    tags: tuple[str, ...],
    log_format: str,
    **_options: Any,
) -> None:
    """Run everything that is due, then end.

    Exit code 1 if a run did not succeed, 6 if another process leads already.

    \b
    tsuzuki run-due --dry-run
    """
    from tsuzuki.engine.role import Role
    from tsuzuki.engine.run_until_idle import run_until_idle
    from tsuzuki.wiring.engine import build_engine

    with application(invocation, dry_run=dry_run) as workspace:
        if dry_run:
            emit(invocation, workspace.due.find(), columns=DUE, empty="Nothing is due.")
            return
        workspace.jobs.apply()
        log_to_stderr(invocation, log_format=log_format)
        role = Role(capacity=capacity, tags=frozenset(tags))
        engine = build_engine(workspace.resources, role, {})
        stopping = Stopping(invocation)
        stopping.watch(engine)
        ended = run_until_idle(engine, stop=stopping.asked)
    emit(
        invocation,
        [{"state": state, "runs": count} for state, count in ended.items()],
        columns=ENDED,
        empty="Nothing was due.",
    )
    if stopping.asked.is_set():
        say(invocation, "Interrupted: what was left is still due.")
        raise ExitWith(130)
    if any(state != "SUCCEEDED" for state in ended):
        raise ExitWith(1)
