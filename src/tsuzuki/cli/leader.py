"""`tsuzuki leader`: show the leader, and end its term."""

from dataclasses import asdict

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.cli.terminal.values import table_text

COLUMNS = [
    Column("epoch"),
    Column("holder"),
    Column(
        "lease_expires_at",
        # The row is made before the first term, with a lease that ended when time was first counted.
        format=lambda moment: table_text(moment if moment.timestamp() > 0 else None),
    ),
    Column("taken_at"),
    Column("is_valid"),
]


@click.group(cls=Group)
def leader() -> None:
    """Show the leader, or make it step down.

    \b
    tsuzuki leader show
    """


@leader.command()
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Show which process leads, since when and in which epoch.

    \b
    tsuzuki leader show --output json
    """
    with open_application(invocation) as application:
        lead = application.workers.leader()
        is_alive = application.liveness.has_live_leader()
        locked = application.liveness.why_database_is_locked()
    emit(invocation, asdict(lead), columns=COLUMNS)
    if locked is not None:
        warn(invocation, locked)
    elif not is_alive:
        say(invocation, "There is no leader. Start one with: tsuzuki up")


@leader.command("step-down")
@yes_option
@click.pass_obj
def step_down(invocation: Invocation, yes: bool) -> None:
    """Make the leader step down. Another election follows.

    \b
    tsuzuki leader step-down --yes
    """
    confirm(invocation, "end the current leader's term", yes=yes)
    with open_application(invocation) as application:
        before = application.workers.step_down()
        after = application.workers.leader()
    say(invocation, f"Epoch {before.epoch} of '{before.holder}' has ended.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, asdict(after), columns=COLUMNS)
