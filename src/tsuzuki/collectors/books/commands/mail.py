"""`tsuzuki books preview` and `tsuzuki books mail`: preview, list, send and resolve emails."""

from typing import TYPE_CHECKING

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import StoredId
from tsuzuki.cli.commands import Command
from tsuzuki.cli.completions import job_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.run.wait import run_and_wait
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import Column, emit, say, warn, write
from tsuzuki.collectors.books.commands.result import tell_books_result
from tsuzuki.collectors.books.commands.service import books_service
from tsuzuki.model.errors import UsageError

if TYPE_CHECKING:
    from tsuzuki.collectors.books.service import MailReset

MAILS = [
    Column("id", align="right"),
    Column("job_name", "JOB"),
    Column("state"),
    Column("books", align="right"),
    Column("created_at", "CREATED"),
    Column("changed_at", "CHANGED"),
    Column("error"),
]


@click.command(cls=Command)
@click.argument("name", shell_complete=job_names("books"))
@click.option("--html", is_flag=True, help="Print the HTML part instead of the text.")
@click.pass_obj
def preview(invocation: Invocation, name: str, html: bool) -> None:
    """Preview a job's next email. Nothing is sent or changed.

    \b
    tsuzuki books preview novelties
    """
    _show_next(invocation, name, html=html)


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="[JOB | reset JOB]", shell_complete=job_names("books"))
@click.option("--dry-run", is_flag=True, help="Show what would be sent or reset without doing it.")
@click.option(
    "--mark-sent", type=StoredId(), metavar="ID", help="Mark this unsettled email as sent."
)
@click.option(
    "--resend", type=StoredId(), metavar="ID", help="Send this email again with the next run."
)
@yes_option
@click.pass_obj
def mail(
    invocation: Invocation,
    words: tuple[str, ...],
    dry_run: bool,
    mark_sent: int | None,
    resend: int | None,
    yes: bool,
) -> None:
    """Send a job's next email now; without a job, list all emails.

    An email is unsettled if the connection was lost before the server's answer. It is never sent again
    automatically: check whether it arrived, then use --mark-sent or --resend.

    `reset JOB` marks all books that a job has emailed as new again. Emails that may not have been sent keep
    their books.

    \b
    tsuzuki books mail
    tsuzuki books mail reset novelties --yes
    tsuzuki books mail novelties --dry-run
    tsuzuki books mail --mark-sent 3 --yes
    """
    name, is_reset = _read_words(words)
    if sum((name is not None, mark_sent is not None, resend is not None)) > 1:
        raise UsageError(
            "a job, --mark-sent and --resend cannot be combined", hint="Use one of them."
        )
    if mark_sent is not None or resend is not None:
        if dry_run:
            raise UsageError(
                "--dry-run cannot be combined with --mark-sent or --resend",
                hint="Nothing was changed. List the emails with: tsuzuki books mail",
            )
        _decide(invocation, mark_sent=mark_sent, resend=resend, yes=yes)
    elif name is None:
        _list(invocation)
    elif is_reset:
        _reset(invocation, name, dry_run=dry_run, yes=yes)
    elif dry_run:
        _show_next(invocation, name, html=False)
    else:
        _send(invocation, name)


def _read_words(words: tuple[str, ...]) -> tuple[str | None, bool]:
    """The job, if one is named, and whether its mails are to be reset."""
    match words:
        case ():
            return None, False
        case (name,):
            return name, False
        case ("reset", name):
            return name, True
        case _:
            raise UsageError(
                f"{' '.join(words)!r} is not a job name",
                hint="Nothing was changed. Name one job, or use: reset JOB",
            )


def _send(invocation: Invocation, name: str) -> None:
    with open_application(invocation) as application:
        books_service(application).require_job(name)
        run_and_wait(
            invocation,
            application,
            name,
            arguments={"collect": False},
            timeout=None,
            tell=tell_books_result,
        )


def _list(invocation: Invocation) -> None:
    with open_application(invocation) as application:
        views = books_service(application).mails()
    emit(invocation, [view.as_dict() for view in views], columns=MAILS, empty="no emails yet")
    unsettled = [view.mail.id for view in views if view.mail.state == "unsettled"]
    if unsettled and not invocation.output.is_json:
        warn(
            invocation,
            f"it is unknown whether {', '.join(map(str, unsettled))} arrived: check, then use "
            "--mark-sent ID or --resend ID",
        )


def _decide(
    invocation: Invocation, *, mark_sent: int | None, resend: int | None, yes: bool
) -> None:
    action = f"mark email {mark_sent} as sent" if resend is None else f"send email {resend} again"
    confirm(invocation, action, yes=yes)
    with open_application(invocation) as application:
        if mark_sent is not None:
            moved = books_service(application).mark_sent(mark_sent)
        elif resend is not None:
            moved = books_service(application).resend(resend)
    say(invocation, f"Email {moved.id} is now {moved.state}.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, moved)


def _reset(invocation: Invocation, name: str, *, dry_run: bool, yes: bool) -> None:
    with open_application(invocation) as application:
        books = books_service(application)
        reset = books.preview_mail_reset(name)
        if not dry_run:
            confirm(invocation, f"let {name} email {_extent(reset)} again", yes=yes)
            reset = books.reset_mails(name)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, reset.as_dict())
        return
    if dry_run:
        write(f"{name} would email {_extent(reset)} again.")
    else:
        write(f"Reset {reset.books} emailed book(s) for job: {name}")
    for mail in reset.kept:
        warn(invocation, f"email {mail.id} is {mail.state} and keeps its books")


def _extent(reset: "MailReset") -> str:
    return f"{reset.books} book(s) of {reset.mails} email(s)"


def _show_next(invocation: Invocation, name: str, *, html: bool) -> None:
    with open_application(invocation) as application:
        shown = books_service(application).preview(name)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, shown, columns=[Column("job"), Column("digest"), Column("books")])
    elif shown.digest is None:
        say(invocation, "There is nothing to email.")
    else:
        say(invocation, f"Subject: {shown.digest.subject}")
        write(shown.digest.html if html else shown.digest.text)
    if shown.digest is not None:
        say(invocation, "Nothing was sent.")
