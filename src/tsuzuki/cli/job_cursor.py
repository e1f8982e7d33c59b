"""`tsuzuki job cursor`: where paged collections go on, and letting one begin anew."""

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.collector_services import books_service
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.output import Column, emit, write
from tsuzuki.model.errors import UsageError

CURSORS = [
    Column("job"),
    Column("start_index", align="right"),
    Column("is_exhausted", "EXHAUSTED"),
    Column("is_current", "CURRENT"),
    Column("last_updated_at", "UPDATED"),
    Column("query_set_hash", "QUERIES", format=lambda text: str(text)[:16]),
]


@click.group(cls=Group)
def cursor() -> None:
    """See where collections go on, or let one begin anew.

    \b
    tsuzuki job cursor ls
    """


@cursor.command()
@click.argument("name", required=False, shell_complete=job_names())
@click.pass_obj
def ls(invocation: Invocation, name: str | None) -> None:
    """List the cursors: of one job, or of all.

    A cursor that is not current belongs to queries the job had before.

    \b
    tsuzuki job cursor ls novelties
    """
    with open_application(invocation) as application:
        views = books_service(application).cursors(name)
    emit(
        invocation,
        [view.as_dict() for view in views],
        columns=CURSORS,
        empty="no cursors yet; the first run of a books job makes one",
    )


@cursor.command()
@click.argument("name", shell_complete=job_names())
@click.option("--yes", "-y", is_flag=True, help="Needed: what was reset cannot be brought back.")
@click.pass_obj
def reset(invocation: Invocation, name: str, yes: bool) -> None:
    """Forget where a job is, and that it is exhausted: it begins at the start.

    Books that were collected, and what was mailed, stay as they are.

    \b
    tsuzuki job cursor reset novelties --yes
    """
    if not yes:
        raise UsageError(
            f"this would reset every cursor of {name}, so it needs --yes",
            hint="Nothing was changed. Say it again with --yes if you mean it.",
            code="not_confirmed",
        )
    with open_application(invocation) as application:
        count = books_service(application).reset_cursors(name)
    if invocation.output is OutputFormat.TABLE:
        write(f"Reset {count} cursor(s) for job: {name}")
    else:
        emit(invocation, {"job": name, "reset": count})
