"""`tsuzuki books`: collected books, the remaining quota, and emails."""

from dataclasses import asdict
from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import timeout_option
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.run.wait import run_and_wait
from tsuzuki.cli.terminal.formatting import format_list
from tsuzuki.cli.terminal.output import Column, emit, warn
from tsuzuki.collectors.books.commands.mail import mail, preview
from tsuzuki.collectors.books.commands.result import tell_books_result
from tsuzuki.collectors.books.commands.service import books_service

BOOKS = [
    Column("volume_id", "VOLUME"),
    Column("title"),
    Column("authors", format=format_list),
    Column("published_date", "PUBLISHED"),
    Column("isbn13", "ISBN"),
    Column("first_seen_at", "FIRST SEEN"),
]
QUOTA = [
    Column("day"),
    Column("calls", align="right"),
    Column("limit", align="right"),
    Column("left", align="right"),
    Column("resets_at", "RESETS"),
    Column("refused_at", "REFUSED"),
]


@click.group(cls=Group)
def books() -> None:
    """Collect books, list them, and email new ones.

    \b
    tsuzuki books collect novelties
    tsuzuki books ls --job novelties
    """


@books.command()
@click.argument("name", shell_complete=job_names("books"))
@click.option("--no-mail", is_flag=True, help="Collect without sending an email.")
@timeout_option
@click.pass_obj
def collect(invocation: Invocation, name: str, no_mail: bool, timeout: float | None) -> None:
    """Continue a job's collection now, wait for it, and exit with its result.

    If no engine is running, one is started for this run.

    \b
    tsuzuki books collect novelties --no-mail
    """
    arguments: dict[str, Any] = {"mail": False} if no_mail else {}
    with open_application(invocation) as application:
        books_service(application).require_job(name)
        run_and_wait(
            invocation,
            application,
            name,
            arguments=arguments,
            timeout=timeout,
            tell=tell_books_result,
        )


@books.command()
@click.option(
    "--job",
    "name",
    metavar="JOB",
    help="Show only books found by this job.",
    shell_complete=job_names("books"),
)
@click.option(
    "--search", "words", metavar="TEXT", help="Search in title, subtitle, authors and ISBN."
)
@click.option(
    "--undelivered", is_flag=True, help="With --job: show only books not emailed by that job yet."
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, help="Maximum number of results."
)
@click.pass_obj
def ls(
    invocation: Invocation, name: str | None, words: str | None, undelivered: bool, limit: int
) -> None:
    """List books, newest first.

    \b
    tsuzuki books ls --search astronomy
    """
    with open_application(invocation) as application:
        found = books_service(application).find(
            job_name=name, words=words, undelivered=undelivered, limit=limit
        )
    emit(
        invocation,
        [
            {
                **one.book._asdict(),
                "first_seen_at": one.first_seen_at,
                "last_seen_at": one.last_seen_at,
            }
            for one in found
        ],
        columns=BOOKS,
        empty="no books found",
    )


@books.command()
@click.pass_obj
def quota(invocation: Invocation) -> None:
    """Show the remaining calls of today's quota and when it resets.

    \b
    tsuzuki books quota
    """
    with open_application(invocation) as application:
        use = books_service(application).quota()
    emit(invocation, {**asdict(use), "left": use.left}, columns=QUOTA)
    if use.refused_at:
        warn(invocation, "Google Books reports that today's quota is used up")


books.add_command(preview)
books.add_command(mail)
