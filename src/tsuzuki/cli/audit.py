"""`tsuzuki audit`: who changed what, and when."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import since_option
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.options import before_id_option, limit_option
from tsuzuki.cli.terminal.formatting import describe_changes, format_list
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.visible_text import neutralise
from tsuzuki.wiring.collectors import audited_types  # noqa: TID253 -- the records are light, and its help lists them

if TYPE_CHECKING:
    from tsuzuki.services.audit import AuditEntry

COLUMNS = [
    Column("id", align="right"),
    Column("at"),
    Column("actor"),
    Column("action"),
    Column("object_id", "OBJECT"),
    Column("changes", format=format_list),
]


@click.group(cls=Group)
def audit() -> None:
    """Show who changed what, and when.

    \b
    tsuzuki audit ls
    tsuzuki audit ls --type job --object hello
    """


@audit.command()
@click.option(
    "--type",
    "object_type",
    type=click.Choice(audited_types()),
    help="Show only changes to objects of this type.",
)
@click.option("--object", "object_id", metavar="NAME", help="Show only changes to this object.")
@click.option(
    "--actor", metavar="WHO", help="Show only changes by this actor, as shown in the ACTOR column."
)
@since_option
@limit_option
@before_id_option
@click.pass_obj
def ls(invocation: Invocation, /, limit: int, **wanted: Any) -> None:
    """List changes, newest first.

    \b
    tsuzuki audit ls --actor cli:alice --limit 10
    tsuzuki audit ls --output jsonl
    """
    with open_application(invocation) as application:
        entries = application.audit.find(limit=limit + 1, **wanted)
    shown = entries[:limit]
    emit(invocation, map(_row, shown), columns=_columns(invocation), empty="no changes found")
    if len(entries) > limit:
        say(invocation, f"Show older changes with: tsuzuki audit ls --before-id {shown[-1].id}")


def _row(entry: "AuditEntry") -> dict[str, Any]:
    return {**asdict(entry), "changes": describe_changes(entry.before, entry.after)}


def _columns(invocation: Invocation) -> list[Column]:
    """In a table a run is named with its job."""
    if invocation.output is not OutputFormat.TABLE:
        return COLUMNS
    named = _ObjectColumn("object_id", "OBJECT")
    return [named if column.key == "object_id" else column for column in COLUMNS]


class _ObjectColumn(Column):
    def cell(self, row: object) -> str:
        object_id = super().cell(row)
        job = row["job"] if isinstance(row, Mapping) else None
        return f"{object_id} ({neutralise(job)})" if job else object_id
