"""`tsuzuki index`: the source code of a tree, indexed. No workspace and no engine is needed."""

import click

from tsuzuki.cli.commands import Group
from tsuzuki.cli.index_build import build, status
from tsuzuki.cli.index_files import ls, rm


@click.group(cls=Group)
def index() -> None:
    """Index the source code of a tree, and see how that goes.

    Any folder will do: no workspace is needed. Without PATH it is the git repository around the current
    folder.

    \b
    tsuzuki index build
    tsuzuki index status
    """


for command in (build, status, ls, rm):
    index.add_command(command)
