"""`tsuzuki feeds items|item|explain|preview|approve|requeue`: each article, and what a person decides about it."""

from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.job.edit import DRY_RUN, dry_run_option
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import Column, emit, say, write
from tsuzuki.collectors.feeds.commands.completions import feed_names
from tsuzuki.collectors.feeds.commands.service import feeds_service
from tsuzuki.model.errors import UsageError

STATUSES = ("unprocessed", "deferred", "pending", "processed")
REASONS = (
    "not_valuable",
    "page_not_ready",
    "download_failed",
    "file_too_large",
    "api_failed",
    "retry_limit_exceeded",
)
WAITING = ("ready", "taken", "backoff", "approval")
STEP_NAMES = ("download", "screening", "summary")

LIST = [
    Column("id", align="right"),
    Column("feed"),
    Column("status"),
    Column("outcome"),
    Column("next_look_at", "NEXT TRY"),
    Column("retry_count", "TRIES", align="right"),
    Column("published_at", "PUBLISHED"),
    Column("title"),
]
OBJECT = [
    Column("id"),
    Column("title"),
    Column("url"),
    Column("feed"),
    Column("job"),
    Column("status"),
    Column("reason"),
    Column("cause"),
    Column("waiting"),
    Column("not_before"),
    Column("next_look_at", "NEXT TRY"),
    Column("retry_count", "TRIES"),
    Column("published_at", "PUBLISHED"),
    Column("created_at", "FOUND"),
    Column("last_checked_at", "LAST CHECKED"),
]
STEPS = [
    Column("at"),
    Column("step"),
    Column("outcome"),
    Column(
        "seconds",
        format=lambda seconds: "-" if seconds is None else f"{seconds:.1f}",
        align="right",
    ),
    Column("tokens", align="right"),
    Column("cost", align="right"),
    Column("detail"),
]


@click.command(cls=Command)
@click.option(
    "--feed", metavar="FEED", help="Show only items of this feed.", shell_complete=feed_names
)
@click.option("--job", metavar="JOB", help="Show only items of this job's feeds.")
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help="Show only items in this state.",
)
@click.option(
    "--reason",
    "reasons",
    type=click.Choice(REASONS),
    multiple=True,
    help="Show only items with this reason.",
)
@click.option("--waiting", type=click.Choice(WAITING), help="Show only items waiting for this.")
@click.option(
    "--step",
    type=click.Choice(STEP_NAMES),
    help="Show only items whose last completed step is this one.",
)
@click.option("--search", "words", metavar="TEXT", help="Search in title and link.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, help="Maximum number of results."
)
@click.pass_obj
def items(invocation: Invocation, /, **said: Any) -> None:
    """List items, newest first.

    \b
    tsuzuki feeds items --feed press --status deferred
    tsuzuki feeds items --waiting approval
    """
    with open_application(invocation) as application:
        found = feeds_service(application).items.find(**said)
    emit(invocation, [view.as_dict() for view in found], columns=LIST, empty="no items found")


@click.command(cls=Command)
@click.argument("name", metavar="ITEM")
@click.pass_obj
def item(invocation: Invocation, name: str) -> None:
    """Show an item by its ID or link.

    \b
    tsuzuki feeds item 12
    """
    with open_application(invocation) as application:
        view = feeds_service(application).items.get(name)
    emit(invocation, view.as_dict(), columns=OBJECT)


@click.command(cls=Command)
@click.argument("name", metavar="ITEM")
@click.pass_obj
def explain(invocation: Invocation, name: str) -> None:
    """Show every step of an item, its cost, and what happens next and when.

    \b
    tsuzuki feeds explain 12
    """
    with open_application(invocation) as application:
        told = feeds_service(application).explanations.explain(name)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, told.as_dict())
        return
    say(invocation, f"Item {told.view.item.id}: {told.view.item.title}")
    for sentence in told.history:
        say(invocation, sentence)
    emit(invocation, [step.as_dict() for step in told.steps], columns=STEPS, empty="no steps yet")
    for sentence in told.next:
        say(invocation, sentence)


@click.command(cls=Command)
@click.argument("name", metavar="ITEM")
@click.option("--prompts", is_flag=True, help="Include the model's prompts.")
@click.pass_obj
def preview(invocation: Invocation, name: str, prompts: bool) -> None:
    """Preview the post of an item.

    The preview uses stored data: nothing is sent, and no model is called.

    \b
    tsuzuki feeds preview 12 --prompts
    """
    with open_application(invocation) as application:
        told = feeds_service(application).previews.preview(name)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, told.as_dict())
        return
    for line in told.lines(prompts=prompts):
        write(line)


@click.command(cls=Command)
@click.argument("names", metavar="ITEM...", nargs=-1, required=True)
@click.option("--was-sent", is_flag=True, help="Mark an unsettled post, edit or reply as sent.")
@click.option("--send-again", is_flag=True, help="Send an unsettled or refused one again.")
@dry_run_option
@click.pass_obj
def approve(
    invocation: Invocation, names: tuple[str, ...], was_sent: bool, send_again: bool, dry_run: bool
) -> None:
    """Approve held posts, which are sent with the next run of their job.

    A post, edit or reply is unsettled if no answer came after it was sent. Runs look for it if the receiver
    supports that. If not, or if you do not want to wait, check yourself and use --was-sent or --send-again.

    \b
    tsuzuki feeds approve 12 13
    """
    if was_sent and send_again:
        raise UsageError(
            "--was-sent and --send-again cannot be combined",
            hint="Check whether the post arrived: if so, use --was-sent, otherwise --send-again.",
        )
    with open_application(invocation) as application:
        service = feeds_service(application).items
        if was_sent or send_again:
            views = service.settle(names, was_sent=was_sent, dry_run=dry_run)
        else:
            views = service.approve(names, dry_run=dry_run)
    say(
        invocation,
        DRY_RUN if dry_run else f"{'Settled' if was_sent else 'Approved'}: {len(views)}.",
    )
    emit(invocation, [view.as_dict() for view in views], columns=LIST)


@click.command(cls=Command)
@click.argument("names", metavar="ITEM...", nargs=-1)
@click.option("--reason", type=click.Choice(REASONS), help="Select all items with this reason.")
@click.option(
    "--feed",
    metavar="FEED",
    help="With --reason: select only items of this feed.",
    shell_complete=feed_names,
)
@dry_run_option
@yes_option
@click.pass_obj
def requeue(
    invocation: Invocation,
    names: tuple[str, ...],
    reason: str | None,
    feed: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Process items again. Items already posted are refused.

    \b
    tsuzuki feeds requeue 12
    tsuzuki feeds requeue --reason retry_limit_exceeded --yes
    """
    if bool(names) == bool(reason):
        raise UsageError(
            "missing items: give IDs, links, or --reason",
            hint="For example: tsuzuki feeds requeue 12; IDs are listed by: tsuzuki feeds items",
        )
    if names and feed is not None:
        raise UsageError(
            "--feed requires --reason",
            hint="Leave --feed out, or use --reason instead of naming items.",
        )
    with open_application(invocation) as application:
        service = feeds_service(application).items
        if reason is None:
            views = service.requeue(names, dry_run=dry_run)
        else:
            views = service.requeue_by_reason(reason, feed=feed, dry_run=True)
            if views and not dry_run:
                confirm(invocation, f"requeue {len(views)} item(s)", yes=yes)
                views = service.requeue_by_reason(reason, feed=feed)
    say(invocation, DRY_RUN if dry_run else f"Requeued: {len(views)}.")
    emit(invocation, [view.as_dict() for view in views], columns=LIST, empty="no matching items")
