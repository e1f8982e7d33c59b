"""`tsuzuki feeds`: the feeds that are followed, and how each fares."""

from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.job.edit import DRY_RUN, dry_run_option
from tsuzuki.cli.job.options import assignment
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import Column, emit, say, warn
from tsuzuki.cli.terminal.values import json_text
from tsuzuki.collectors.feeds.commands.completions import feed_names
from tsuzuki.collectors.feeds.commands.items import approve, explain, item, items, preview, requeue
from tsuzuki.collectors.feeds.commands.run import budget, fetch, process
from tsuzuki.collectors.feeds.commands.service import feeds_service

DEFAULT_JOB = "feeds"
STYLES = {"good": "green", "failing": "bold red", "silent": "yellow", "ended": "yellow"}


def _settings(body: dict[str, Any]) -> str:
    """`language: "ja", hold: true`."""
    rest = {key: value for key, value in body.items() if key != "url"}
    return ", ".join(f"{key}: {json_text(value)}" for key, value in rest.items()) or "-"


SET = Column("set", "SETTINGS", format=_settings)
HEALTH = Column("health", style=lambda health: STYLES.get(health, ""))
LIST = [
    Column("name"),
    Column("job"),
    HEALTH,
    Column("last_good_at", "LAST GOOD"),
    Column("next_at", "NEXT"),
    Column("unprocessed", "NEW", align="right"),
    Column("deferred", align="right"),
    Column("pending", align="right"),
    Column("approval", "HELD", align="right"),
    Column("posted", align="right"),
]
OBJECT = [
    Column("name"),
    Column("job"),
    Column("title"),
    Column("url"),
    Column("moved_to"),
    HEALTH,
    Column("health_since", "SINCE"),
    Column("error"),
    Column("failing_since"),
    Column("failures"),
    Column("not_before"),
    Column("last_good_at", "LAST GOOD"),
    Column("last_new_at", "LAST NEW"),
    Column("next_at", "NEXT"),
    Column("unprocessed"),
    Column("deferred"),
    Column("pending"),
    Column("approval", "HELD"),
    Column("processed"),
    Column("posted"),
    SET,
]
ADDED = [
    Column("name"),
    Column("job"),
    Column("url"),
    Column("model"),
    Column("account"),
    SET,
]


@click.group(cls=Group)
def feeds() -> None:
    """Follow feeds; screen, summarize and post each new article once.

    \b
    tsuzuki feeds add press https://www.example.org/press.rdf --set language=ja
    tsuzuki feeds fetch feeds
    tsuzuki feeds items --feed press
    tsuzuki feeds explain 12
    """


@feeds.command()
@click.argument("name")
@click.argument("url")
@click.option(
    "--job", "job_name", default=DEFAULT_JOB, metavar="JOB", help="Job that fetches the feed."
)
@click.option("--every", default="15m", metavar="INTERVAL", help="Interval of a new job.")
@click.option(
    "--set",
    "settings",
    type=assignment,
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a key of the feed, as in the file: language=ja, hold=true, backfill=3.",
)
@dry_run_option
@click.pass_obj
def add(
    invocation: Invocation,
    name: str,
    url: str,
    job_name: str,
    every: str,
    settings: tuple[tuple[str, str], ...],
    dry_run: bool,
) -> None:
    """Add a feed to a job in the file. The job is created if it does not exist.

    Articles already listed at the first fetch are not posted, except as many as `backfill` allows.

    \b
    tsuzuki feeds add press https://www.example.org/press.rdf --set language=ja --set hold=true
    """
    from tsuzuki.services.jobs import parse_key_value

    body: dict[str, Any] = {"url": url}
    for key, text in settings:
        body[key] = parse_key_value(key, text)
    with open_application(invocation) as application:  # a dry run needs the tables too
        definitions = feeds_service(application).definitions
        view = definitions.add(
            job_name, name, body, schedule={"schedule": {"every": every}}, dry_run=dry_run
        )
        setup = definitions.setup(view, name)
    say(invocation, DRY_RUN if dry_run else f"Added '{name}' to the job '{job_name}'.")
    added = view.as_dict()["options"]["feeds"][name]
    about = {"name": name, "job": job_name, "set": body, **vars(setup)}
    emit(invocation, {**added, **about}, columns=ADDED)
    for sentence in setup.notes:
        say(invocation, sentence)
    for sentence in setup.missing:
        say(invocation, f"Missing: {sentence}")
    if not (setup.missing or dry_run):
        say(invocation, f"Next: tsuzuki feeds fetch {job_name}")


@feeds.command()
@click.option("--job", "job_name", metavar="JOB", help="Show only feeds of this job.")
@click.pass_obj
def ls(invocation: Invocation, job_name: str | None) -> None:
    """List feeds with their health and queue.

    \b
    tsuzuki feeds ls --job feeds
    """
    with open_application(invocation) as application:
        found = feeds_service(application).definitions.find(job_name, counted=True)
    emit(
        invocation,
        [view.as_dict() for view in found],
        columns=LIST,
        empty="no feeds; add one with: tsuzuki feeds add NAME URL",
    )


@feeds.command()
@click.argument("name", shell_complete=feed_names)
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show a feed's settings, recent fetches and items.

    \b
    tsuzuki feeds show press
    """
    with open_application(invocation) as application:
        view = feeds_service(application).definitions.get(name, counted=True)
    settings = view.options.model_dump(mode="json") if view.options else None
    written = view.options.model_dump(mode="json", exclude_defaults=True) if view.options else {}
    shown = {**view.as_dict(), "settings": settings, "set": written}
    emit(invocation, shown, columns=OBJECT)
    if view.stored is not None and view.stored.error:
        warn(invocation, f"the last fetch failed: {view.stored.error}")


@feeds.command()
@click.argument("name", shell_complete=feed_names)
@yes_option
@click.pass_obj
def rm(invocation: Invocation, name: str, yes: bool) -> None:
    """Stop following a feed.

    Its items are kept so that none is posted twice if you add the feed again.

    \b
    tsuzuki feeds rm press --yes
    """
    with open_application(invocation) as application:
        service = feeds_service(application)
        view = service.definitions.get(name)
        confirm(invocation, f"remove the feed {view.label}", yes=yes)
        service.definitions.remove(name)
    say(invocation, f"Removed '{view.name}' from the job '{view.job}'.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, view.as_dict(), columns=LIST)


for command in (fetch, items, item, process, preview, approve, requeue, explain, budget):
    feeds.add_command(command)
