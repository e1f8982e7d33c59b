"""`tsuzuki index ls` and `rm`: the index files of this user."""

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.formatting import format_size, format_stored_time
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.collectors.codeindex.commands.service import builds_service
from tsuzuki.model.errors import UsageError

ENTRIES = [
    Column("root"),
    Column("state"),
    Column("files", align="right"),
    Column("symbols", align="right"),
    Column("last_indexed_at", "INDEXED AT", format=format_stored_time),
    Column("bytes", "SIZE", format=format_size, align="right"),
]


@click.command(cls=Command)
@click.pass_obj
def ls(invocation: Invocation) -> None:
    """List all indexes with state and size.

    \b
    tsuzuki index ls
    """
    entries = builds_service(invocation).entries()
    empty = "There is no index yet. Build one with: tsuzuki index build"
    emit(invocation, entries, columns=ENTRIES, empty=empty)


@click.command(cls=Command)
@click.argument("path", required=False)
@click.option("--gone", is_flag=True, help="Remove every index whose tree no longer exists.")
@yes_option
@click.pass_obj
def rm(invocation: Invocation, path: str | None, gone: bool, yes: bool) -> None:
    """Remove the index of a tree. The tree itself is not touched.

    PATH is the root of the tree, or an index file.

    \b
    tsuzuki index rm ~/src/django --yes
    tsuzuki index rm --gone --yes
    """
    if gone == (path is not None):
        raise UsageError(
            "rm takes either a PATH or --gone",
            hint="List the indexes with: tsuzuki index ls",
        )
    builds = builds_service(invocation)
    if path is not None:
        entries = [builds.find(path, cwd=invocation.cwd)]
    else:
        entries = [entry for entry in builds.entries() if entry.state == "root gone"]
    if not entries:
        say(invocation, "Every index still has its tree.")
    for entry in entries:
        confirm(invocation, f"remove the index of {entry.root or entry.index_file}", yes=yes)
        builds.remove(entry)
    emit(invocation, entries, columns=ENTRIES, empty="Nothing was removed.")
