"""`tsuzuki statuses`."""

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.terminal.output import emit


@click.group("statuses", cls=Group)
def statuses():
    """Keep the public statuses of Mastodon accounts."""


@statuses.command()
@click.option("--job", help="Only those of this job.")
@click.pass_obj
def ls(invocation, job):
    """List the statuses that are kept, the oldest first."""
    with open_application(invocation) as application:
        emit(invocation, application.service("statuses").find(job))
