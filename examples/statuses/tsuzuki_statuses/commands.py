"""`tsuzuki statuses`, and the cursors of `tsuzuki job cursor`."""

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import emit, say

JOB_NAMES = job_names("statuses")


def cursors(application):
    return application.service("statuses")


@click.group("statuses", cls=Group)
def statuses():
    """Collect the public statuses of Mastodon accounts.

    \b
    tsuzuki statuses ls
    """


@statuses.command()
@click.option("--job", shell_complete=JOB_NAMES, help="Show the statuses of this job only.")
@click.option("--limit", default=100, help="Maximum number of statuses.")
@click.pass_obj
def ls(invocation, job, limit):
    """List stored statuses by job, oldest first.

    \b
    tsuzuki statuses ls --job news
    """
    with open_application(invocation) as application:
        emit(invocation, application.service("statuses").find(job=job, limit=limit))


@statuses.command()
@click.argument("job", shell_complete=JOB_NAMES)
@yes_option
@click.pass_obj
def forget(invocation, job, yes):
    """Delete the stored statuses of a job and its cursor.

    \b
    tsuzuki statuses forget news --yes
    """
    with open_application(invocation) as application:
        confirm(invocation, f"delete the statuses of {job}", yes=yes)
        forgotten = application.service("statuses").forget(job)
    say(invocation, f"Deleted {forgotten} statuses of {job}.")
