"""`tsuzuki event`: emit and list events."""

from dataclasses import asdict
from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import JsonParameter, since_option
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.options import before_id_option, limit_option
from tsuzuki.cli.terminal.output import Column, emit, say

COLUMNS = [
    Column("id", align="right"),
    Column("event_type", "EVENT"),
    Column("created_at"),
    Column("processed_at"),
    Column("dedupe_key", "KEY"),
]


@click.group(cls=Group)
def event() -> None:
    """Emit and list events.

    \b
    tsuzuki event emit order.created --payload '{"order": 7}' --key order-7
    """


@event.command("emit")
@click.argument("event_type", metavar="EVENT")
@click.option(
    "--payload", type=JsonParameter(), default="{}", metavar="JSON", help="Payload of the event."
)
@click.option(
    "--key",
    "dedupe_key",
    metavar="KEY",
    help="Deduplication key: for each event type, repeated calls emit only one event.",
)
@click.pass_obj
def emit_event(
    invocation: Invocation, event_type: str, payload: object, dedupe_key: str | None
) -> None:
    """Emit an event, which starts the jobs that listen for it.

    \b
    tsuzuki event emit order.created --payload '{"order": 7}' --key order-7
    """
    with open_application(invocation) as application:
        stored, is_new = application.events.emit(
            event_type, payload, dedupe_key=dedupe_key, actor=application.principal.actor
        )
        listeners = application.events.listeners(event_type)
    emit(invocation, {**asdict(stored), "is_new": is_new, "listeners": listeners}, columns=COLUMNS)
    if not is_new:
        say(invocation, f"The key {dedupe_key!r} was used before; this is the event emitted then.")
    elif listeners:
        say(invocation, f"Jobs that will run: {', '.join(listeners)}")
    else:
        say(
            invocation,
            f"No enabled job listens for {event_type!r}. Add `on_event: {event_type}` to a job.",
        )


@event.command()
@click.option("--type", "event_type", metavar="EVENT", help="Show only events of this type.")
@since_option
@limit_option
@before_id_option
@click.pass_obj
def ls(invocation: Invocation, /, **wanted: Any) -> None:
    """List events, newest first.

    \b
    tsuzuki event ls --type order.created
    """
    with open_application(invocation) as application:
        found = application.events.find(**wanted)
    emit(invocation, map(asdict, found), columns=COLUMNS, empty="no events found")
